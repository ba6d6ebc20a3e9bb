"""`bin/pulsar proxy` without metadata, in front of a standalone; and what it does not start on."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.clients.python_client import names, publish, quiet_client, receive
from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT, StartedProcess, free_port

pytestmark = pytest.mark.clients

PULSAR = str(ROOT / "bin" / "pulsar")


def sets(*settings: str) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], "where the brokers are is not set: metadataStoreUrl, such as zk:host1:2181,host2:2181; or brokerServiceURL"),
        (
            ["brokerServiceURL=b:6650", "brokerWebServiceURL=http://b:8080"],
            "brokerServiceURL=b:6650: expected pulsar://host:port",
        ),
        (["metadataStoreUrl=zk:nobody:x"], "is not a ZooKeeper server"),
    ],
)
def test_a_missing_or_wrong_proxy_setting_is_named_without_a_traceback(settings: list[str], says: str) -> None:
    done = subprocess.run([PULSAR, "proxy", *sets(*settings)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = [f"servicePort={taken.getsockname()[1]}", "webServicePort=0", "bindAddress=127.0.0.1"]
        brokers = ["brokerServiceURL=pulsar://b:6650", "brokerWebServiceURL=http://b:8080"]
        command = [PULSAR, "proxy", *sets(*where, *brokers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "servicePort" in done.stderr
    assert "stop what listens there" in done.stderr


def test_without_metadata_it_reaches_the_broker_that_it_is_told(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "server") as server, StartedProcess(tmp_path / "proxy") as proxy:
        ready = server.start()
        told = (
            f"brokerServiceURL={ready.broker_url}",
            f"brokerWebServiceURL={ready.web_url}",
            f"brokerProxyAllowedTargetPorts={server.ports[0]}",
            "brokerProxyAllowedHostNames=127.0.0.*",
            "bindAddress=127.0.0.1",
            f"servicePort={free_port()}",
            "webServicePort=0",
        )
        proxy.launch_command([PULSAR, "proxy", "--json-ready", str(proxy.ready_file), *sets(*told)])
        client = quiet_client(proxy.until_ready_file()["serviceUrl"])
        try:
            consumer = client.subscribe("through", "s")
            publish(client, "through", 10)
            assert receive(consumer, 10) == names(0, 10)
        finally:
            client.close()
        assert proxy.stop() == 0, proxy.log.read_text()
