"""Apache's Python client, unmodified, whose process is stopped: its socket stays open and nothing answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.python_client import names, publish, quiet_client, receive
from tests.clients.server_process import ServerProcess

pytestmark = pytest.mark.clients

HOLDER = """
import sys, pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe(sys.argv[2], "s")
producer = client.create_producer(sys.argv[2], producer_name="n")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def impatient_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, ("connectionLivenessCheckTimeoutMillis=500",)) as process:
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()


def test_names_held_by_a_stopped_client_go_to_the_next_and_those_of_a_living_one_do_not(
    impatient_server: ServerProcess, topic: str
) -> None:
    assert impatient_server.ready is not None
    url = impatient_server.ready.broker_url
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, url, topic], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        client = quiet_client(url)
        try:
            assert holder.stdout.readline() == "ready\n"
            with pytest.raises(pulsar.ProducerBusy):
                client.create_producer(topic, producer_name="n")
            with pytest.raises(pulsar.ConsumerBusy):
                client.subscribe(topic, "s")
            holder.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, holder.pid, os.WSTOPPED)  # all its threads: one that still ran would answer
            consumer = client.subscribe(topic, "s")
            publish(client, topic, 3, producer_name="n")
            assert receive(consumer, 3) == names(0, 3)
        finally:
            client.close()
            holder.kill()
