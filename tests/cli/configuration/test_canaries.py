"""Secrets of every configuration there can be stand in nothing that is shown; generated from the keys."""

import logging
from pathlib import Path

import pytest

from broker.admin.app import admin_app
from broker.policies.topic_settings import TopicSettings
from broker.service.settings import BrokerSettings
from cli.__main__ import main
from cli.configuration.changes import ChangingSettings
from cli.configuration.loading import load_configuration
from cli.configuration.report import SETTINGS, report
from cli.configuration.verdicts import BOOKIE, BROKER, PROXY, STANDALONE, keys_of
from ports.settings import BadSetting, is_secret, shown_value
from tests.broker.admin.admin_world import AdminWorld, play

CANARY = "canary-93b7f1"
URL = f"http://user:{CANARY}@host:8080/path?a=b&password={CANARY}"
FILES = {BROKER: "broker.conf", STANDALONE: "standalone.conf", BOOKIE: "bookkeeper.conf", PROXY: "proxy.conf"}
KEYS = {BROKER: "broker", STANDALONE: "broker", BOOKIE: "bookkeeper", PROXY: "proxy"}


def canaries(kind: str) -> str:
    """A file with one in every secret, and in every URL."""
    keys = sorted(keys_of(KEYS[kind]))
    secrets = [f"{key}={CANARY}" for key in keys if is_secret(key)]
    urls = [f"{key}={URL}" for key in keys if key.lower().endswith(("url", "urltls")) and not is_secret(key)]
    assert len(secrets) >= 2
    return "\n".join((*secrets, *urls))


@pytest.mark.parametrize("kind", list(FILES))
def test_no_canary_is_shown_by_checks_differences_or_errors(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = canaries(kind)
    file = tmp_path / FILES[kind]
    file.write_text(text)
    found = report(FILES[kind], text, [], kind)
    for command in (["check"], ["check", "--json"], ["diff"], ["diff", "--json"]):
        main(["config", *command, str(file)])
    configuration = load_configuration([(FILES[kind], text)], [])
    told = [repr(configuration), *found.errors, *found.warnings]
    for settings in SETTINGS[kind]:
        try:
            configuration.settings(settings)
        except BadSetting as error:
            told.append(str(error))
    shown = capsys.readouterr()
    assert [each for each in (*told, shown.out, shown.err, caplog.text) if CANARY in each] == []


def test_no_canary_is_in_what_a_broker_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    configuration = load_configuration([("broker.conf", canaries(BROKER))], [])

    async def scenario(world: AdminWorld) -> None:
        world.service.dynamic_configuration._settings = ChangingSettings(configuration, (BrokerSettings, TopicSettings))
        world.app = admin_app(world.service, world.store, "9.8.7")
        for path in ("configuration", "configuration/runtime", "configuration/values", "internal-configuration"):
            answer = await world.get(f"/admin/v2/brokers/{path}")
            assert answer.status == 200
            assert CANARY not in answer.body.decode()
        runtime = (await world.get("/admin/v2/brokers/configuration/runtime")).json
        assert runtime["brokerClientAuthenticationParameters"] == "*****"

    play(scenario)
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("zk:host:2181,other:2181/chroot", "zk:host:2181,other:2181/chroot"),
        (f"zk:user:{CANARY}@host", f"zk:user:{CANARY}@host"),  # no URL: what stands before the @ is not taken for credentials
        (f"http://user:{CANARY}@host:1/p", "http://*****@host:1/p"),
        (f"jdbc:postgresql://host/db?user=a&password={CANARY}", "jdbc:postgresql://host/db?user=a&password=*****"),
        (f"jdbc:mysql://a:{CANARY}@host/db?token={CANARY};x=y", "jdbc:mysql://*****@host/db?token=*****;x=y"),
        ("pulsar://host:6650", "pulsar://host:6650"),
    ],
)
def test_the_credentials_in_a_url_are_not_shown(value: str, shown: str) -> None:
    assert shown_value("serviceUrl", value) == shown
