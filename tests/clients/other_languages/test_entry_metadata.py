"""Broker entry metadata, seen by a client that says it knows it (Go) and one that does not (Python), across a kill."""

import json
import os
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pulsar import InitialPosition

from managed_ledger.settings import BROKER_ENTRY_METADATA_INTERCEPTORS
from tests.clients.python_client import names, nothing_comes, publish, quiet_client, receive
from tests.clients.server_process import ServerProcess

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("PULSAR_TEST_URL" in os.environ, reason="needs settings of its own"),
]

GO = Path(__file__).parent.parent / "go"


SETTINGS = (
    f"brokerEntryMetadataInterceptors={','.join(BROKER_ENTRY_METADATA_INTERCEPTORS)}",
    "exposingBrokerEntryMetadataToClientEnabled=true",
    "defaultRetentionTimeInMinutes=-1",
    "defaultRetentionSizeInMB=-1",
)


@pytest.fixture
def stamping(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path, SETTINGS)
    process.start()
    yield process
    process.stop()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
@pytest.mark.timeout(300)
def test_a_client_that_knows_it_sees_times_and_indexes_and_they_go_on_after_a_kill(stamping: ServerProcess) -> None:
    topic = f"persistent://public/default/stamped-{uuid.uuid4().hex[:12]}"
    go_reads(stamping, topic)
    stamping.kill()
    stamping.start()
    go_reads(stamping, topic)


def go_reads(server: ServerProcess, topic: str) -> None:
    """Publishes 13 messages and reads all there are: each has its place as its index."""
    assert server.ready is not None
    done = subprocess.run(
        ["go", "test", "-count=1", "-v", "-tags", "entrymetadata", "-run", "TestBrokerEntryMetadata", "./..."],
        cwd=GO,
        env={**os.environ, "PULSAR_TEST_URL": server.ready.broker_url, "TOPIC": topic},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- PASS: TestBrokerEntryMetadata" in done.stdout


def test_a_client_that_does_not_know_it_gets_what_was_sent_and_a_subscription_is_reset_by_index(
    stamping: ServerProcess,
) -> None:
    assert stamping.ready is not None
    name = f"stamped-{uuid.uuid4().hex[:12]}"
    topic = f"persistent://public/default/{name}"
    admin = f"{stamping.ready.web_url}/admin/v2/persistent/public/default/{name}"
    client = quiet_client(stamping.ready.broker_url)
    try:
        client.subscribe(topic, "s").close()
        publish(client, topic, 5, batching=True)
        publish(client, topic, 5, first=5)
        with urllib.request.urlopen(f"{admin}/getMessageIdByIndex?index=7", timeout=10) as answer:
            found = json.load(answer)
        consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
        assert receive(consumer, 10) == names(0, 10)
        consumer.close()
        post_json(f"{admin}/subscription/s/resetcursor", found)
        consumer = client.subscribe(topic, "s")
        assert receive(consumer, 3) == names(7, 3)
        assert nothing_comes(consumer)
        consumer.close()
    finally:
        client.close()


def post_json(url: str, body: object) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 204
