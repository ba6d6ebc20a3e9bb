"""WebSocket clients of other people (`websocket-client`, the one of Apache's documentation) against a standalone."""

import base64
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from websocket import ABNF, WebSocket, WebSocketBadStatusException, create_connection

from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import ROOT

SECONDS_MAX = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with ServerProcess(tmp_path_factory.mktemp("websocket"), ("webSocketMaxTextFrameSize=100000",)) as process:
        yield process.start()


def connected(server: Ready, path: str) -> "closing[WebSocket]":
    url = server.web_url.replace("http", "ws", 1) + path
    return closing(create_connection(url, timeout=SECONDS_MAX, skip_utf8_validation=True))  # it costs 40 ms for 100 kB


def publish(socket: WebSocket, payload: bytes, **members: Any) -> Any:
    socket.send(json.dumps({"payload": base64.b64encode(payload).decode(), **members}))
    return json.loads(socket.recv())


def received(socket: WebSocket) -> tuple[str, bytes]:
    message = json.loads(socket.recv())
    return message["messageId"], base64.b64decode(message["payload"])


def next_frame(socket: WebSocket) -> Any:
    return socket.recv_frame()  # type: ignore[no-untyped-call]  # the library has half of its types


def acknowledge(socket: WebSocket, *message_ids: str) -> None:
    """Returns once the session has taken them."""
    for each in message_ids:
        socket.send(json.dumps({"messageId": each}))
    socket.send(json.dumps({"type": "isEndOfTopic"}))
    assert json.loads(socket.recv()) == {"endOfTopic": False}


def asked(server: Ready, path: str, method: str = "GET") -> Any:
    request = urllib.request.Request(server.web_url + path, method=method)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return json.loads(answer.read() or b"null")


def test_messages_go_from_a_producer_to_a_consumer_and_a_reader(server: Ready) -> None:
    topic = "persistent/public/default/all-three"
    with (
        connected(server, f"/ws/v2/consumer/{topic}/s") as consumer,
        connected(server, f"/ws/v2/producer/{topic}") as producer,
        connected(server, f"/ws/v2/reader/{topic}?messageId=earliest") as reader,
    ):
        ids = [publish(producer, b"m%d" % number, context=str(number))["messageId"] for number in range(3)]
        expected = [(ids[number], b"m%d" % number) for number in range(3)]
        assert [received(consumer) for _ in range(3)] == expected
        assert [received(reader) for _ in range(3)] == expected
        acknowledge(consumer, *ids)
        stats = asked(server, f"/admin/v2/{topic}/stats")
        assert stats["subscriptions"]["s"]["msgBacklog"] == 0
        assert stats["publishers"][0]["clientVersion"] == "Interpulse WebSocket"


def test_the_example_of_the_page_prints_what_the_page_says(server: Ready, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "websocket.md").read_text()
    blocks = dict(re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL))
    program = tmp_path / "example.py"
    program.write_text(blocks["python"].replace("localhost:8080", server.web_url.removeprefix("http://")))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (ran.stdout, ran.stderr) == (blocks["text"], "")


def test_a_session_outlives_the_unloading_of_its_topic(server: Ready) -> None:
    topic = "persistent/public/default/unloaded"
    with (
        connected(server, f"/ws/v2/consumer/{topic}/s") as consumer,
        connected(server, f"/ws/v2/producer/{topic}") as producer,
    ):
        publish(producer, b"before")
        message_id, payload = received(consumer)
        acknowledge(consumer, message_id)
        asked(server, f"/admin/v2/{topic}/unload", "PUT")
        assert publish(producer, b"after")["result"] == "ok"
        assert (payload, received(consumer)[1]) == (b"before", b"after")


def test_partitions_are_one_topic_to_a_session(server: Ready) -> None:
    topic = "persistent/public/default/partitioned"
    request = urllib.request.Request(
        f"{server.web_url}/admin/v2/{topic}/partitions", b"3", {"Content-Type": "application/json"}, method="PUT"
    )
    urllib.request.urlopen(request, timeout=SECONDS_MAX).close()
    with (
        connected(server, f"/ws/v2/consumer/{topic}/s?receiverQueueSize=2") as consumer,
        connected(server, f"/ws/v2/producer/{topic}?messageRoutingMode=RoundRobinPartition") as producer,
    ):
        for number in range(9):
            publish(producer, b"%d" % number)
        found = set()
        for _ in range(9):
            message_id, payload = received(consumer)
            found.add(payload)
            consumer.send(json.dumps({"messageId": message_id}))
        assert found == {b"%d" % number for number in range(9)}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ws/v2/other/persistent/public/default/t", 404),
        ("/ws/v2/producer/persistent/public/absent/t", 404),
        ("/ws/v2/consumer/persistent/public/default/t", 400),
        ("/ws/v2/consumer/persistent/public/default/t/s?subscriptionType=Any", 400),
    ],
)
def test_a_session_that_cannot_be_is_refused_with_a_status(server: Ready, path: str, status: int) -> None:
    with pytest.raises(WebSocketBadStatusException) as refused:
        connected(server, path)
    assert refused.value.status_code == status


def test_a_second_exclusive_consumer_is_refused_with_409(server: Ready) -> None:
    path = "/ws/v2/consumer/persistent/public/default/exclusive/s"
    with connected(server, path):
        with pytest.raises(WebSocketBadStatusException) as refused:
            connected(server, path)
        assert refused.value.status_code == 409
    with connected(server, path + "?subscriptionType=Shared"):
        """The first one is gone with its socket."""


def test_a_message_that_is_too_large_ends_its_session_and_no_other(server: Ready) -> None:
    topic = "persistent/public/default/too-large"
    with connected(server, f"/ws/v2/producer/{topic}") as first, connected(server, f"/ws/v2/producer/{topic}") as second:
        first.send("x" * 100_001)
        frame = next_frame(first)
        assert (frame.opcode, int.from_bytes(frame.data[:2])) == (ABNF.OPCODE_CLOSE, 1009)
        assert publish(second, b"fine")["result"] == "ok"


def test_a_binary_message_ends_its_session_with_1003(server: Ready) -> None:
    with connected(server, "/ws/v2/producer/persistent/public/default/binary") as socket:
        socket.send_binary(b"x")
        assert int.from_bytes(next_frame(socket).data[:2]) == 1003


def test_pings_are_answered(server: Ready) -> None:
    with connected(server, "/ws/v2/producer/persistent/public/default/pinged") as socket:
        socket.ping("are you there")
        frame = next_frame(socket)
        assert (frame.opcode, frame.data) == (ABNF.OPCODE_PONG, b"are you there")


def test_a_client_that_does_not_read_makes_its_broker_wait_and_gets_all_once_it_reads(server: Ready) -> None:
    topic, payload, count = "persistent/public/default/not-read", bytes(70_000), 500
    with (
        connected(server, f"/ws/v2/consumer/{topic}/s") as consumer,
        connected(server, f"/ws/v2/producer/{topic}") as producer,
    ):
        for _ in range(count):
            assert publish(producer, payload)["result"] == "ok"
        assert asked(server, f"/admin/v2/{topic}/stats")["msgOutCounter"] < count
        assert all(received(consumer)[1] == payload for _ in range(count))


def test_a_message_that_is_refused_too_often_is_in_the_dead_letter_topic(server: Ready) -> None:
    topic = "persistent/public/default/refused"
    query = "subscriptionType=Shared&negativeAckRedeliveryDelay=50&maxRedeliverCount=2"
    with (
        connected(server, f"/ws/v2/consumer/{topic}/s?{query}") as consumer,
        connected(server, f"/ws/v2/producer/{topic}") as producer,
        connected(server, f"/ws/v2/consumer/{topic}-s-DLQ/dead") as dead,
    ):
        message_id = publish(producer, b"bad", properties={"a": "b"}, key="k")["messageId"]
        counts = []
        for _ in range(3):
            message = json.loads(consumer.recv())
            counts.append(message["redeliveryCount"])
            consumer.send(json.dumps({"type": "negativeAcknowledge", "messageId": message_id}))
        letter = json.loads(dead.recv())
        assert counts == [0, 1, 2]
        assert (base64.b64decode(letter["payload"]), letter["key"], letter["properties"]["a"]) == (b"bad", "k", "b")
        assert letter["properties"]["REAL_TOPIC"] == "persistent://public/default/refused"
        publish(producer, b"good")
        assert received(consumer)[1] == b"good"
