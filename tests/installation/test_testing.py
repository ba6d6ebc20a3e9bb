"""`interpulse.testing` in a stranger's project: the fixture `pulsar_broker`, and `broker()` for programs."""

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.installation.conftest import Installation, run_in, wait_for

PROJECT = """
import importlib.util, json, os, pathlib, sys, urllib.request
import pulsar, pytest

SEEN = []


@pytest.mark.parametrize("order", ["book", "a pen/ink"])
def test_orders_are_shipped(pulsar_broker, order):
    client = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(pulsar_broker.topic("orders"), "shipping")
    client.create_producer(pulsar_broker.topic("orders")).send(order.encode())
    assert consumer.receive(timeout_millis=5000).data() == order.encode()
    with urllib.request.urlopen(f"{pulsar_broker.admin_url}/admin/v2/persistent/{pulsar_broker.namespace}") as answer:
        assert json.load(answer) == [pulsar_broker.topic("orders")]
    client.close()
    SEEN.append(pulsar_broker)


def test_each_test_has_its_own_namespace_on_one_broker(pulsar_broker):
    assert len({seen.process_id for seen in [*SEEN, pulsar_broker]}) == 1
    assert len({seen.namespace for seen in [*SEEN, pulsar_broker]}) == 3
    with urllib.request.urlopen(f"{pulsar_broker.admin_url}/admin/v2/namespaces/public") as answer:
        assert not {seen.namespace for seen in SEEN} & set(json.load(answer))


def test_the_settings_of_the_project_are_in_force(pulsar_broker):
    with urllib.request.urlopen(f"{pulsar_broker.admin_url}/admin/v2/brokers/configuration/runtime") as answer:
        assert json.load(answer)["maxMessageSize"] == "1234567"


def test_nothing_of_the_product_is_importable_here(pulsar_broker):
    found = [name for name in ("cli", "broker", "metadata", "wire", "bookie") if importlib.util.find_spec(name)]
    assert found == []
    pathlib.Path("told.json").write_text(json.dumps({"pid": pulsar_broker.process_id}))
"""
SETTINGS = "[pytest]\npulsar_broker_settings =\n    maxMessageSize=1234567\n"
WAITS = """
import os, pathlib


def test_a_test_waits(pulsar_broker):
    pathlib.Path("told.part").write_text(f'{{"pid": {pulsar_broker.process_id}}}')
    os.rename("told.part", "told.json")
    os.read(0, 1)
"""
PROGRAM = """
import asyncio, json, pulsar
from interpulse.testing import BrokerDidNotStart, broker


async def main():
    async with broker() as started:
        client = pulsar.Client(started.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        client.create_producer(started.topic("greetings")).send(b"hello")
        client.close()
    try:
        async with broker({"no.such.setting": "1"}):
            pass
    except BrokerDidNotStart as error:
        print(json.dumps({"pid": started.process_id, "said": str(error)}))


asyncio.run(main())
"""


def test_the_fixture_gives_each_test_a_namespace_and_leaves_nothing_behind(installed: Installation, folder: Path) -> None:
    (folder / "test_orders.py").write_text(PROJECT)
    (folder / "pytest.ini").write_text(SETTINGS)
    result = run_in(folder, str(installed.python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed" in result.stdout, result.stdout + result.stderr
    assert not runs(json.loads((folder / "told.json").read_text())["pid"])
    assert leftovers(folder) == []


def test_a_test_run_that_wants_no_broker_loads_the_fixture_alone(installed: Installation, folder: Path) -> None:
    loaded = "import pytest, sys; old = {*sys.modules}; import interpulse.pytest_plugin; print(*sorted({*sys.modules} - old))"
    result = run_in(folder, str(installed.python), "-c", loaded)
    assert result.stdout.split() == ["interpulse", "interpulse.pytest_plugin"], result.stderr


def test_the_broker_ends_with_a_test_run_that_is_killed(installed: Installation, folder: Path) -> None:
    (folder / "test_waits.py").write_text(WAITS)
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    command = [str(installed.python), "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as tests:
        try:
            wait_for((folder / "told.json").exists)
            server = json.loads((folder / "told.json").read_text())["pid"]
            assert runs(server)
            assert leftovers(folder) != []
        finally:
            tests.send_signal(signal.SIGKILL)
    wait_for(lambda: not runs(server))
    assert leftovers(folder) == []


def test_a_program_has_a_broker_for_a_while_and_is_told_why_one_does_not_start(installed: Installation, folder: Path) -> None:
    result = run_in(folder, str(installed.python), "-c", PROGRAM)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert not runs(told["pid"])
    assert "no.such.setting" in told["said"]
    assert leftovers(folder) == []


def leftovers(folder: Path) -> list[Path]:
    """The data of brokers under the folder, which is TMPDIR too."""
    return list(folder.glob("interpulse-*"))


def runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{process_id}/status").read_text()
