"""A standalone with what operators turn on: metrics of consumers and of transactions, measured by pulsar-perf transaction."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.deployment.dashboards import ASKED_FOR, stock_metrics
from tests.clients.python_client import publish, quiet_client
from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import ROOT

SECONDS_MAX = 120.0
TOPIC = "persistent://public/default/asked-for"

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def status_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("status") / "in-service"


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory, status_file: Path) -> Iterator[Ready]:
    settings = (
        "transactionCoordinatorEnabled=true",
        "exposeConsumerLevelMetricsInPrometheus=true",
        "exposeManagedCursorMetricsInPrometheus=true",
        f"statusFilePath={status_file}",
    )
    with ServerProcess(tmp_path_factory.mktemp("operated"), settings) as process:
        yield process.start()


@pytest.fixture
def client(operated: Ready) -> Iterator[pulsar.Client]:
    connected = quiet_client(operated.broker_url)
    yield connected
    connected.close()


def perf(server: Ready, *words: str) -> tuple[int, str, str]:
    patience = ["-tto", "300"] if words[0] == "transaction" else []
    command = [str(ROOT / "bin" / "pulsar-perf"), *words, *patience, "-u", server.broker_url]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def count(server: Ready, topic: str) -> int:
    code, out, err = perf(server, "read", topic, "-n", "1", "--json", "-time", "5")
    assert code == 0, err
    return int(json.loads(out.splitlines()[-1])["messages"])


def test_transactions_are_measured_and_what_they_publish_is_there(operated: Ready, client: pulsar.Client) -> None:
    producer = client.create_producer(f"{TOPIC}-in")
    for index in range(60):
        producer.send(str(index).encode())
    words = ["transaction", "--topics-c", f"{TOPIC}-in", "--topics-p", f"{TOPIC}-out", "-nmp", "2", "-nmc", "3", "-ntxn", "20"]
    code, out, err = perf(operated, *words, "-threads", "2", "--json")
    assert code == 0, err
    told = json.loads(out.splitlines()[-1])
    assert (told["transactions"], told["messagesSent"], told["messagesAcked"]) == (20, 40, 60)
    assert told["sendLatencyMs"]["max"] >= told["sendLatencyMs"]["med"] > 0
    reader = client.create_reader(f"{TOPIC}-out", pulsar.MessageId.earliest)
    assert len([reader.read_next(timeout_millis=30_000) for _ in range(40)]) == 40
    assert not reader.has_message_available()


def test_aborted_transactions_leave_nothing_and_a_table_is_told(operated: Ready, client: pulsar.Client) -> None:
    publish(client, f"{TOPIC}-in2", 5)
    words = ["transaction", "--topics-c", f"{TOPIC}-in2", "--topics-p", f"{TOPIC}-out2", "-ntxn", "5", "-abort"]
    code, out, err = perf(operated, *words)
    assert code == 0, err
    assert "5 transaction executed --- 5 message sent --- 5 message acked" in out
    assert re.search(r"^ +send +ack$", out, re.MULTILINE)
    assert count(operated, f"{TOPIC}-out2") == 0


def test_without_transactions_the_same_is_called_tasks(operated: Ready, client: pulsar.Client) -> None:
    publish(client, f"{TOPIC}-in3", 5)
    words = [
        "transaction",
        "--topics-c",
        f"{TOPIC}-in3",
        "--topics-p",
        f"{TOPIC}-out3",
        "-ntxn",
        "5",
        "--txn-disable",
        "--json",
    ]
    code, out, err = perf(operated, *words)
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["tasks"] == 5


def test_the_consumer_and_transaction_metrics_of_stock_boards_are_there(operated: Ready, client: pulsar.Client) -> None:
    consumer = client.subscribe(TOPIC, "s")
    publish(client, f"{TOPIC}-in4", 1)  # a coordinator is loaded for the first who asks for it
    code, _, err = perf(operated, "transaction", "--topics-c", f"{TOPIC}-in4", "--topics-p", f"{TOPIC}-out4", "-ntxn", "1")
    assert code == 0, err
    with urllib.request.urlopen(f"{operated.web_url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    series = [
        (match[1], set(re.findall(r'(\w+)="[^"]', match[2]))) for match in re.finditer(r"^(\w+)\{(.*)\} ", text, re.MULTILINE)
    ]
    for name, labels in stock_metrics()[ASKED_FOR].items():
        assert any(told == name and set(labels) <= found for told, found in series), name
    consumer.close()


def test_a_load_balancer_is_told_to_leave_by_taking_a_file_away(operated: Ready, status_file: Path) -> None:
    def status() -> int:
        try:
            with urllib.request.urlopen(f"{operated.web_url}/status.html", timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    assert status() == 404
    status_file.touch()
    assert status() == 200
    status_file.unlink()
    assert status() == 404
