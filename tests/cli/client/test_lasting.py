"""The tools go on when connections break or the broker closes what they have: nothing lost, nothing told twice, true counts.

Against a broker that breaks at the n-th send, delivery or acknowledgement (`small_broker`): plans drawn from seeds, no clocks.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cli.client.__main__ import main as client
from cli.client.lasting import PAUSE_SECONDS_MAX, Pauses
from cli.perf.__main__ import main as perf
from tests.cli.small_broker import Faults, SmallBroker
from tests.started_process import ROOT, free_port
from wire.generated.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from wire.payloads import message_metadata, payload_section, split_section

COUNT = 60


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.client.lasting.PAUSE_SECONDS", 0.001)


@contextmanager
def serving(broker: SmallBroker) -> Iterator[str]:
    """Address of the broker. Connections of one tool can overlap, so that each has a thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker.url = f"pulsar://127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=_accept, args=(server, broker), daemon=True).start()
        yield broker.url
        server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, broker: SmallBroker) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the test is over
            return
        threading.Thread(target=_serve, args=(connection, broker), daemon=True).start()


def _serve(connection: socket.socket, broker: SmallBroker) -> None:
    with connection:
        broker.serve(connection)


def drawn(seed: int) -> Faults:
    """A few counts for each kind of fault; in half of the seeds acknowledgements take effect late."""
    chance = random.Random(seed)

    def some() -> set[int]:
        return set(chance.sample(range(1, COUNT), chance.randrange(4)))

    return Faults(some(), some(), some(), some(), some(), some(), some(), has_late_acks=seed % 2 == 1)


def sections(count: int) -> list[bytes]:
    return [
        payload_section(MessageMetadata(producer_name="p", sequence_id=number, publish_time=1), b"m%d" % number)
        for number in range(count)
    ]


def payload(section: bytes) -> str:
    return bytes(split_section(section).payload).decode()


@pytest.mark.parametrize("seed", range(12))
def test_produced_messages_are_stored_in_order_and_counted_once_whatever_breaks(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = SmallBroker(drawn(seed))
    messages = ",".join(f"m{number}" for number in range(COUNT))
    with serving(broker) as url:
        assert client(["--url", url, "produce", "t", "-m", messages]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == f"{COUNT} messages successfully produced"
    found = [payload(section) for section in broker.stored]
    assert list(dict.fromkeys(found)) == messages.split(",")
    names = {message_metadata(split_section(section)).producer_name for section in broker.stored}
    assert names == {"made-up"}
    assert [name for name, _ in broker.producers[1:]] == ["made-up"] * (len(broker.producers) - 1)
    assert [epoch for _, epoch in broker.producers] == list(range(len(broker.producers)))
    if len(found) > COUNT:  # a receipt was lost: it is said that some may be there twice
        assert "messages were sent again after a connection broke" in told.err


@pytest.mark.parametrize("seed", range(12))
def test_every_message_is_consumed_once_and_acknowledged_whatever_breaks(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(drawn(seed), sections(COUNT))
    with serving(broker) as url:
        assert client(["--url", url, "consume", "t", "-s", "s", "-n", str(COUNT), "-q", "8", "--json"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["payload"] for line in told.out.splitlines()] == [f"m{number}" for number in range(COUNT)]
    assert broker.acked == set(range(COUNT))
    assert f"{COUNT} messages successfully consumed" in told.err
    assert told.err.count("connecting again") == told.err.count("connected again after") == broker.subscribes - 1


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_reads_every_message_once_and_in_order_whatever_breaks(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(drawn(seed), sections(COUNT))
    with serving(broker) as url:
        assert client(["--url", url, "read", "t", "-m", "earliest", "-n", str(COUNT), "-q", "8", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["payload"] for line in lines] == [f"m{number}" for number in range(COUNT)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("delay", ["0", "100"])
def test_perf_counts_each_entry_once_over_whatever_breaks(seed: int, delay: str, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(drawn(seed), sections(COUNT))
    words = ["consume", "t", "-m", str(COUNT), "-q", "8", "--acks-delay-millis", delay, "--json"]
    with serving(broker) as url:
        assert perf([*words, "-u", url]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["messages"] == COUNT
    assert figures["reconnected"] == broker.subscribes - 1
    assert broker.acked == set(range(COUNT))


@pytest.mark.parametrize("seed", range(6))
def test_perf_produces_as_many_as_it_says_over_whatever_breaks(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(drawn(seed))
    with serving(broker) as url:
        assert perf(["produce", "t", "-m", str(COUNT), "-r", "0", "-db", "-u", url, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["messages"] == COUNT
    sequences = [message_metadata(split_section(section)).sequence_id for section in broker.stored]
    assert sorted(set(sequences)) == list(range(COUNT))
    assert len(sequences) - COUNT <= figures["resent"]


def test_a_topic_whose_owner_died_is_waited_for_until_another_broker_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(Faults())
    broker.dead_lookups, broker.dead_url = 3, f"pulsar://127.0.0.1:{free_port()}"
    with serving(broker) as url:
        assert client(["--url", url, "produce", "t", "-m", "a"]) == 0
    assert [payload(section) for section in broker.stored] == ["a"]


def test_a_broker_that_stays_away_is_named_with_who_named_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.client.lasting.START_SECONDS_MAX", 0.01)
    broker = SmallBroker(Faults())
    broker.dead_lookups, broker.dead_url = 1_000_000, f"pulsar://127.0.0.1:{free_port()}"
    with serving(broker) as url:
        assert client(["--url", url, "produce", "t", "-m", "a"]) == 1
    told = capsys.readouterr().err
    assert f"{url} says that {broker.dead_url} serves persistent://public/default/t, and that cannot be reached" in told
    assert "advertisedAddress" in told


def test_a_receipt_that_never_comes_is_noticed_by_the_next_one(capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(Faults(skips_receipt={3}))
    with serving(broker) as url:
        assert client(["--url", url, "produce", "t", "-m", "a,b,c,d,e"]) == 0
    told = capsys.readouterr()
    assert "5 messages successfully produced" in told.out
    assert "a receipt for message 3, where 2 is the next: receipts were lost; connecting again" in told.err
    assert {payload(section) for section in broker.stored} == set("abcde")


def test_a_batch_of_which_a_part_is_printed_is_not_acknowledged(capsys: pytest.CaptureFixture[str]) -> None:
    body = b""
    for number in range(5):
        single = SingleMessageMetadata(payload_size=2).SerializeToString()
        body += len(single).to_bytes(4) + single + b"b%d" % number
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=5)
    broker = SmallBroker(Faults(), [payload_section(metadata, body)])
    with serving(broker) as url:
        assert client(["--url", url, "consume", "t", "-s", "s", "-n", "3", "--json"]) == 0
        first = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert client(["--url", url, "consume", "t", "-s", "s", "-n", "5", "--json"]) == 0
        again = [json.loads(line)["payload"] for line in capsys.readouterr().out.splitlines()]
    assert [(each["payload"], each["message_id"]) for each in first] == [(f"b{n}", f"7:0:-1:{n}") for n in range(3)]
    assert again == [f"b{number}" for number in range(5)]
    assert broker.acked == {0}


def test_a_redelivery_count_is_told_with_json_and_with_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(Faults(), sections(2))
    broker.redelivery_count = 3
    with serving(broker) as url:
        assert client(["--url", url, "consume", "t", "-s", "s", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["redelivery_count"] == 3
        assert client(["--url", url, "consume", "t", "-s", "s", "-mp"]) == 0
    assert capsys.readouterr().out.endswith("message-id:7:1:-1, producer-name:p, sequence-id:1, redelivery-count:3\n")


@pytest.mark.parametrize("tool", ["client", "perf"])
def test_an_interrupt_ends_with_what_was_done_until_then(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    broker = SmallBroker(Faults(), sections(4))

    def interrupt_when_all_are_acknowledged() -> None:
        if len(broker.acked) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    broker.on_acked = interrupt_when_all_are_acknowledged
    with serving(broker) as url:
        if tool == "client":
            assert client(["--url", url, "consume", "t", "-s", "s", "-n", "0"]) == 130
            assert "4 messages successfully consumed" in capsys.readouterr().err
        else:
            assert perf(["consume", "t", "-u", url, "--acks-delay-millis", "0", "--json"]) == 130
            assert json.loads(capsys.readouterr().out.splitlines()[-1])["messages"] == 4


def test_pauses_grow_to_a_bound_and_are_partly_chance() -> None:
    longest = [pauses.next() for pauses in [Pauses(lambda: 1.0)] for _ in range(20)]
    assert longest == sorted(longest)
    assert longest[-1] == PAUSE_SECONDS_MAX
    assert [Pauses(lambda: 0.0).next()] == [longest[0] / 2]


def test_a_program_behind_a_pipe_that_has_had_enough_ends_a_tool_without_a_word() -> None:
    broker = SmallBroker(Faults(), sections(2000))  # more than a pipe holds
    with serving(broker) as url:
        command = [sys.executable, "-m", "cli.client", "--url", url, "consume", "t", "-s", "s", "-n", "0", "--json"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["payload"] == "m0"
            process.stdout.close()
            assert process.stderr.read() == ""
            assert process.wait(60) == 0
