"""replay: a range of a topic to another, each message once, whatever becomes of the runs on the way."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pulsar
import pytest
from pulsar.schema import AvroSchema, Record, String

from pipeline.pyspark_pulsar.client.admin import ledgers_of
from tests.clients.python_client import ask, publish, published, quiet_client, until
from tests.clients.server_process import Ready
from tests.pipeline.chunk_sender import send_chunks
from tests.pipeline.job_process import JobProcess, run_job, urls, written_report
from tests.pipeline.written_topics import access, made, messages, stats

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a job takes minutes
COLUMNS = ("key", "value", "properties", "event_time", "message_id", "publish_time")
SENT = ("key", "value", "properties", "event_time")


def write_some(server: Ready, topic: str, count: int, first: int = 0) -> None:
    """Some with a key, properties or an event time, most in batches."""
    client = quiet_client(server.broker_url)
    try:
        producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=7, block_if_queue_full=True)
        for number in range(first, first + count):
            producer.send_async(
                f"value {number}".encode(),
                lambda result, message_id: None,
                partition_key=f"k{number % 9}" if number % 4 else None,
                properties={"number": f"{number}", "ü": ""} if number % 3 else None,
                event_timestamp=1_700_000_000_000 + number if number % 5 else None,
            )
        producer.flush()
    finally:
        client.close()


def as_sent(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(each[name] for name in SENT) for each in found]


def by_key(found: list[dict[str, Any]]) -> dict[Any, list[bytes]]:
    values = defaultdict(list)
    for each in found:
        if each["key"] is not None:
            values[each["key"]].append(each["value"])
    return values


def replay(server: Ready, topic: str, to: str, *more: str) -> list[str]:
    return ["replay", *urls(server), "--topics", topic, "--to", to, "--name", "test", *more]


def test_a_replay_that_is_killed_again_and_again_copies_each_message_once(standalone: Ready, topic: str) -> None:
    """The target has partitions, and each message is an entry so that copying takes a while; chance decides when to kill."""
    to = f"{topic}-copy"
    made(standalone, topic)
    made(standalone, to, partitions=2, deduplicates=True)
    for part in range(3):  # a ledger each
        write_some(standalone, topic, 500, 500 * part)
        ask(standalone, f"{topic.replace('://', '/')}/unload", {}, "PUT")
    words = replay(standalone, topic, to, "--sink-option", "pulsar.producer.batchingMaxMessages=1")
    partitions = [f"{to}-partition-{index}" for index in range(2)]

    def copied() -> int:
        return sum(int(stats(standalone, each.replace("://", "/"))["msgInCounter"]) for each in partitions)

    chance = random.Random(4)
    for _ in range(4):
        goal = copied() + chance.randrange(1, 200)
        with JobProcess(words) as job:
            until(lambda: copied() >= goal or job.has_ended(), 300)  # noqa: B023 - asked before the loop goes on
            job.kill()
    ended = run_job(words)
    assert ended.code == 0, ended.complaint
    parts = [messages(standalone, each, COLUMNS) for each in partitions]
    expected = messages(standalone, topic, COLUMNS)
    assert len(expected) == 1500
    assert sorted(map(repr, as_sent(parts[0] + parts[1]))) == sorted(map(repr, as_sent(expected)))
    assert set(by_key(parts[0])) & set(by_key(parts[1])) == set()
    assert {**by_key(parts[0]), **by_key(parts[1])} == by_key(expected)
    again = run_job(words)
    assert again.facts["messages sent"] == 0
    assert copied() == 1500


def test_a_range_by_position_by_time_and_by_index(standalone: Ready, topic: str, tmp_path: Path) -> None:
    made(standalone, topic)
    write_some(standalone, topic, 60)
    every = messages(standalone, topic, COLUMNS)
    places = [(each["message_id"]["ledger_id"], each["message_id"]["entry_id"]) for each in every]
    first = next(index for index in range(20, 60) if places[index] != places[index - 1])
    end = next(index for index in range(40, 60) if places[index] != places[index - 1])
    chosen = every[first:end]

    def copied(name: str, *limits: str) -> list[tuple[Any, ...]]:
        to = made(standalone, f"{topic}-{name}", deduplicates=True)
        words = replay(standalone, topic, to, *limits)
        assert run_job([*words, "--dry-run"]).facts["entries"] > 0
        assert messages(standalone, to) == []
        ended = run_job([*words, "--report", str(tmp_path)])
        assert ended.code == 0, ended.complaint
        found = messages(standalone, to, COLUMNS)
        [row] = written_report(tmp_path, "replay")["tables"]["by topic"]
        assert (row["topic"], row["sent"]) == (topic, len(found))
        return as_sent(found)

    position = ["{}:{}".format(*places[index]) for index in (first, end)]
    assert copied("position", "--starting-offsets", position[0], "--ending-offsets", position[1]) == as_sent(chosen)
    assert copied("index", "--starting-index", "33", "--ending-index", "47") == as_sent(every[33:47])
    times = [round(every[index]["publish_time"].timestamp() * 1000) for index in (first, -1)]
    wanted = [each for each in every if times[0] <= round(each["publish_time"].timestamp() * 1000) < times[1]]
    assert copied("time", "--starting-time", f"{times[0]}", "--ending-time", f"{times[1]}") == as_sent(wanted)


def test_schemas_are_those_of_the_messages(standalone: Ready, topic: str) -> None:
    class First(Record):  # type: ignore[misc]  # the client has no types
        name = String()

    class Second(Record):  # type: ignore[misc]
        _avro_name = "First"
        name = String()
        city = String(required_default=True)

    client = quiet_client(standalone.broker_url)
    try:
        for index, record in enumerate((First(name="a"), Second(name="b", city="c"), First(name="d"))):
            producer = client.create_producer(topic, schema=AvroSchema(type(record)))
            producer.send(record)
            producer.close()
            assert index < 3
        to = made(standalone, f"{topic}-copy", deduplicates=True)
        assert run_job(replay(standalone, topic, to)).facts["messages sent"] == 3
        columns = ("value", "schema_version")
        assert messages(standalone, to, columns) == messages(standalone, topic, columns)
        assert [each["schema_version"] for each in messages(standalone, to, columns)] == [0, 1, 0]
    finally:
        client.close()


def test_a_replay_at_double_speed_takes_at_least_half_the_time(standalone: Ready, topic: str) -> None:
    """A replay takes as long as the messages did, divided by the speed: at least that, a slow machine takes longer."""
    made(standalone, topic)
    client = quiet_client(standalone.broker_url)
    try:
        publish(client, topic, 1)
        began = messages(standalone, topic, COLUMNS)[0]["publish_time"].timestamp()
        last = began
        while last < began + 1:  # by the clock that stamps them
            publish(client, topic, 1)
            last = messages(standalone, topic, COLUMNS)[-1]["publish_time"].timestamp()
    finally:
        client.close()
    to = made(standalone, f"{topic}-copy", deduplicates=True)
    ended = run_job(replay(standalone, topic, to, "--speed", "2"))
    assert ended.code == 0, ended.complaint
    copies = messages(standalone, to, COLUMNS)
    assert ended.facts["seconds"] > (last - began) / 2 - 0.05
    assert as_sent(copies) == as_sent(messages(standalone, topic, COLUMNS))


def test_an_impossible_replay_ends_with_an_error_that_names_the_cause(standalone: Ready, topic: str) -> None:
    def complaint(*words: str) -> str:
        ended = run_job(list(words))
        assert ended.code == 2
        assert "Traceback" not in ended.complaint
        return ended.complaint

    to = f"{topic}-copy"
    assert f"{to}: " in complaint(*replay(standalone, topic, to))
    made(standalone, to)
    assert f"{topic}: " in complaint(*replay(standalone, topic, to))
    made(standalone, topic)
    published(standalone, topic, 3)
    assert f"{to}: deduplication is" in complaint(*replay(standalone, topic, to))
    [ledger] = [each.ledger_id for each in ledgers_of(topic, access(standalone)) if each.entries]
    beyond = f"{ledger + 9}:0"
    assert f"{topic}: position {beyond} is beyond" in complaint(*replay(standalone, topic, to, "--starting-offsets", beyond))
    assert f"{topic}: position {beyond} is beyond" in complaint(*replay(standalone, topic, to, "--ending-offsets", beyond))
    assert "--speed" in complaint(*replay(standalone, topic, to, "--speed", "-1"))
    assert "would never end" in complaint(*replay(standalone, topic, topic))
    assert "option unacknowledgedBy=s: " in complaint(*replay(standalone, topic, to, "--option", "unacknowledgedBy=s"))
    assert "--sink-option createTopic: expected" in complaint(*replay(standalone, topic, to, "--sink-option", "createTopic"))


def test_a_message_in_chunks_is_copied_whole_or_named_where_it_is_too_large_for_that(standalone: Ready, topic: str) -> None:
    """Small chunks are one message again; what no entry can hold is told with its place, and how to go on."""
    made(standalone, topic)
    to = made(standalone, f"{topic}-copy", deduplicates=True)
    send_chunks(standalone, topic, [b"one ", b"two ", b"three"])
    ended = run_job(replay(standalone, topic, to))
    assert (ended.code, ended.facts["messages sent"]) == (0, 1)
    assert [each["value"] for each in messages(standalone, to)] == [b"one two three"]
    megabytes = [random.Random(each).randbytes(3 << 20) for each in range(2)]
    send_chunks(standalone, topic, megabytes, sequence_id=8)
    [ledger] = [each.ledger_id for each in ledgers_of(topic, access(standalone)) if each.entries]
    ended = run_job(replay(standalone, topic, to))
    assert ended.code == 2
    assert f"{topic} at {ledger}:4 cannot be copied: {to}: a message of 62" in ended.complaint
    assert "maxMessageSize" in ended.complaint
    assert len(messages(standalone, to)) == 1


def test_a_client_reads_what_was_replayed(standalone: Ready, topic: str) -> None:
    """Whole batches with keys, by Apache's own client."""
    made(standalone, topic)
    write_some(standalone, topic, 30)
    to = made(standalone, f"{topic}-copy", deduplicates=True)
    assert run_job(replay(standalone, topic, to)).code == 0
    client = quiet_client(standalone.broker_url)
    try:
        reader = client.create_reader(to, pulsar.MessageId.earliest)
        found = [reader.read_next(timeout_millis=60_000) for _ in range(30)]
    finally:
        client.close()
    assert [each.data() for each in found] == [f"value {number}".encode() for number in range(30)]
    assert found[7].partition_key() == "k7"
    assert found[7].properties() == {"number": "7", "ü": ""}
    assert found[7].event_timestamp() == 1_700_000_000_007
