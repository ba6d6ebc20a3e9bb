"""Names in Dockerfile, docker-compose.yml and deploy: each one that a file uses is there."""

import json
import os
import re
import shutil
import stat
import sys
from pathlib import Path

import yaml

from cli.configuration.loading import PREFIX, environment_settings
from tests.certificates import need_openssl
from tests.clients.deployment.compose_file import (
    COMPOSE,
    SECRETS,
    SECURED,
    Places,
    dockerfile,
    image_entrypoint,
    image_environment,
    is_ours,
    services,
)
from tests.started_process import ROOT, StartedProcess
from tests.toolchain import run_tool

WORDS = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
DEPLOY = ROOT / "deploy"


def copies(stage: int) -> list[list[str]]:
    """Sources and the target of each COPY from the checkout."""
    lines = [each.arguments.split() for each in dockerfile() if each.word == "COPY" and each.stage == stage]
    return [words for words in lines if not words[0].startswith("--")]


def test_the_dockerfile_copies_what_is_there_and_what_it_may() -> None:
    assert {each.word for each in dockerfile()} <= WORDS
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = {source for stage in (0, 1) for words in copies(stage) for source in words[:-1]}
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {source.split("/")[0] for source in sources} == allowed


def test_the_image_serves_for_a_user_without_rights() -> None:
    last = dockerfile()[-1].stage
    assert [each.arguments for each in dockerfile() if each.word == "USER" and each.stage == last] == ["interpulse"]
    assert yaml.safe_load(dockerfile()[-1].arguments) == ["standalone", "--from-env"]


def test_the_files_copied_into_the_image_are_all_that_a_server_needs(tmp_path: Path) -> None:
    """A standalone from the tree of the image's last stage, with its entry point and environment."""
    image = tmp_path / "image"
    built = [["wire", "wire"]]  # from the first stage, where it was copied from here
    for source, target in [*copies(1), *built]:
        shutil.copytree(ROOT / source, image / target, ignore=shutil.ignore_patterns("__pycache__"))
    server = StartedProcess(tmp_path / "server")
    environment = {
        **image_environment(),
        "PYTHONPATH": str(image),
        "PULSAR_PREFIX_brokerServicePort": "0",
        "webServicePort": "0",
    }
    words = [f"{name}={value}" for name, value in environment.items()]
    more = ["standalone", "--from-env", "--data-dir", str(tmp_path / "data"), "--json-ready", str(server.ready_file)]
    with server:
        server.launch_command(["env", "-i", "-C", str(image), *words, *image_entrypoint(), *more])
        assert server.until_ready_file()["brokerServiceUrl"].startswith("pulsar://")
        assert server.stop() == 0, server.log.read_text()


def test_every_setting_of_the_file_is_one(tmp_path: Path) -> None:
    places = Places("127.0.0", tmp_path)
    ours = [name for name, service in services().items() if is_ours(service)]
    assert len(ours) == 9
    for name in ours:
        given = {key: value for key, value in places.environment(name).items() if key.startswith(PREFIX)}
        assert len(environment_settings(given, with_plain_names=True)) == len(given)


def test_three_of_each_and_two_of_three_copies_acknowledge() -> None:
    for kind in ("zookeeper", "bookie", "broker"):
        assert sum(name.startswith(f"{kind}-") for name in services()) == 3
    environment = services()["broker-1"]["environment"]
    sizes = [environment[f"{PREFIX}managedLedgerDefault{name}"] for name in ("EnsembleSize", "WriteQuorum", "AckQuorum")]
    assert sizes == ["3", "3", "2"]


def test_every_server_is_started_again_and_what_holds_data_has_a_volume() -> None:
    named = set(yaml.safe_load(COMPOSE.read_text())["volumes"])
    for name, service in services().items():
        assert service["restart"] in ("unless-stopped", "on-failure")
        mounted = {each.split(":")[0] for each in service.get("volumes", ())}
        assert {each for each in mounted if not each.startswith("./")} <= named
        assert all((ROOT / each).exists() for each in mounted if each.startswith("./")), mounted
        if name.startswith(("bookie-", "zookeeper-")):
            assert name in mounted
        assert "healthcheck" in service or service["restart"] == "on-failure", f"{name} runs, and nobody asks whether it works"


def test_every_service_has_limits_of_memory_logs_and_open_files() -> None:
    for name, service in services().items():
        options = service["logging"]["options"]
        assert (service["logging"]["driver"], options["max-size"], options["max-file"]) == ("json-file", "50m", "4"), name
        assert service["ulimits"]["nofile"] == {"soft": 65536, "hard": 65536}, name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name


def test_ports_are_open_to_this_machine_alone_unless_it_is_asked_for() -> None:
    published = [port for service in services().values() for port in service.get("ports", ())]
    assert len(published) == 3
    assert [port for port in published if not port.startswith("${PUBLISH:-127.0.0.1}:")] == []


def test_grafana_has_no_account_whose_password_anybody_knows() -> None:
    environment = services()["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert (environment["GF_AUTH_BASIC_ENABLED"], environment["GF_AUTH_DISABLE_LOGIN_FORM"]) == ("false", "true")
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_prometheus_and_grafana_name_services_and_files_that_are_there() -> None:
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    hosts = {target.split(":")[0] for job in jobs for each in job["static_configs"] for target in each["targets"]}
    assert hosts == {name for name in services() if name.startswith(("bookie-", "broker-", "proxy", "autorecovery"))}
    (source,) = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert re.fullmatch(r"http://(\w+):9090", source["url"])[1] in services()  # type: ignore[index]
    boards = [json.loads(path.read_text()) for path in (DEPLOY / "grafana" / "boards").glob("*.json")]
    used = {target["datasource"]["uid"] for board in boards for panel in board["panels"] for target in panel["targets"]}
    assert used == {source["uid"]}
    home = services()["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / home.lstrip("/")).is_file()


@need_openssl
def test_the_secured_variant_changes_services_that_are_there_and_mounts_what_the_script_makes(tmp_path: Path) -> None:
    secured = services(COMPOSE, SECURED)
    assert set(secured) == set(services())
    run_tool([str(ROOT / "deploy" / "make-secrets")], ROOT, 120, {**os.environ, "SECRETS": str(tmp_path)})
    mounts = [each for service in secured.values() for each in service.get("volumes", ()) if each.startswith(SECRETS)]
    assert len(mounts) == 21
    assert [each for each in mounts if not (tmp_path / each.removeprefix(SECRETS + "/").split(":")[0]).is_file()] == []
    assert not [each for each in mounts if "ca.key" in each], "the authority's key is no server's"
    assert all(each.endswith(":ro") for each in mounts)
    jobs = yaml.safe_load((DEPLOY / "prometheus.tls.yml").read_text())["scrape_configs"]
    assert {job["job_name"] for job in jobs if job.get("scheme") == "https"} == {"broker"}
    published = [port for service in secured.values() for port in service.get("ports", ())]
    assert [port.rpartition(":")[2] for port in published] == ["6651", "8443", "3000"]
    places = Places("127.0.0", tmp_path, COMPOSE, SECURED, secrets=tmp_path)
    for name in ("broker-1", "proxy"):
        given = {key: value for key, value in places.environment(name).items() if key.startswith(PREFIX)}
        assert len(environment_settings(given, with_plain_names=True)) == len(given)
        assert given[f"{PREFIX}tokenSecretKey"] == f"file://{tmp_path}/token.key"


@need_openssl
def test_secrets_that_are_there_stay_and_nobody_else_reads_them(tmp_path: Path) -> None:
    script, environment = str(ROOT / "deploy" / "make-secrets"), {**os.environ, "SECRETS": str(tmp_path / "s")}
    run_tool([script], ROOT, 120, environment)
    before = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    run_tool([script, "alice"], ROOT, 120, environment)
    after = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"alice.token"}
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700


def test_only_names_of_services_become_addresses(tmp_path: Path) -> None:
    places = Places("127.9.9", tmp_path)
    first = places.addresses["broker-1"]
    assert places.placed("pulsar://broker-1:6650,broker-11:1 my-broker-1 broker-1.x") == (
        f"pulsar://{first}:6650,broker-11:1 my-broker-1 broker-1.x"
    )
    assert places.command("proxy")[-2:] == ["proxy", "--from-env"]
    assert places.environment("bookie-2")[f"{PREFIX}ledgerDirectories"] == f"{tmp_path}/bookie-2/ledgers"
    assert Path(sys.executable).parent == Path(places.environment("bookie-2")["PATH"].split(os.pathsep)[0])
