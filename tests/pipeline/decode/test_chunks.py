"""Messages in chunks: whole wherever splits begin and end, once, and an error where a chunk is gone."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import cramjam
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.client import whole_messages as module
from pipeline.pyspark_pulsar.client.whole_messages import whole_messages
from pipeline.pyspark_pulsar.decode import chunks
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.decode.rows import Rows, rows_of
from pipeline.pyspark_pulsar.positions import EARLIEST, Ledger, Place, ranges_before, ranges_between
from tests.pipeline.sections import batch, block, metadata, single, with_index
from wire.generated.pulsar_api_pb2 import EncryptionKeys
from wire.payloads import payload_section

LEDGER = 7


def chunk(uuid: str, number: int, count: int, payload: bytes, total: int, **more: Any) -> bytes:
    about = metadata(5, producer=uuid.partition("-")[0], uuid=uuid, num_chunks_from_msg=count, chunk_id=number, **more)
    about.total_chunk_msg_size = total
    return payload_section(about, payload)


def in_chunks(uuid: str, payload: bytes, count: int, **more: str) -> list[bytes]:
    size = -(-len(payload) // count)
    return [chunk(uuid, at, count, payload[at * size : at * size + size], len(payload), **more) for at in range(count)]


def rows(topic: list[bytes], first: int, end: int) -> Rows:
    return rows_of(block(*topic[first:end], ledger_id=LEDGER, first_entry_id=first))


def windows(topic: list[bytes], end: Place, distance: int = 10_000) -> Iterator[Iterator[Rows]]:
    size, until = 2, end.entry_id
    while until > 0 and distance > 0:
        first = max(0, until - min(size, distance))
        yield iter([rows(topic, first, until)])
        distance, until, size = distance - size, first, 2 * size


def read(topic: list[bytes], cuts: list[int], of_blocks: int = 3, **how: int) -> list[tuple[int, bytes, str | None]]:
    """Entry, value and error of every row, of splits that end at the cuts."""
    found = []
    bounds = [0, *sorted(cuts), len(topic)]
    for first, end in itertools.pairwise(bounds):
        parts = (rows(topic, at, min(at + of_blocks, end)) for at in range(first, end, of_blocks))
        for each in whole_messages(parts, lambda place: windows(topic, place, **how), True):
            table = batch_of(each, "t", ["value", "message_id", "error"]).to_pylist()
            found += [(row["message_id"]["entry_id"], row["value"], row["error"]) for row in table]
    return found


def values(found: list[tuple[int, bytes, str | None]]) -> list[tuple[int, bytes]]:
    assert [each for each in found if each[2] is not None] == []
    return [each[:2] for each in found]


def test_chunks_that_are_encrypted_are_one_message_whose_error_says_so() -> None:
    """Each has sixteen bytes more than it was cut with: its seal."""
    key = EncryptionKeys(key="mine", value=b"k")
    parts = [chunk("p-1", at, 2, b"x" * 26, 20, encryption_keys=[key]) for at in range(2)]
    whole = batch([single(b"open")])
    expected = (2, b"x" * 52, "t at 7:2: it is encrypted, and there are no keys here")
    assert read([whole, *parts, whole], []) == [(0, b"open", None), expected, (3, b"open", None)]


LONG = bytes(range(256)) * 3
MIXED = [
    batch([single(b"a"), single(b"b")]),
    *in_chunks("p-1", LONG, 4)[:2],
    batch([single(b"c")]),
    *in_chunks("q-1", b"other", 2),
    *in_chunks("p-1", LONG, 4)[2:],
    payload_section(metadata(), b"d"),
]


@pytest.mark.parametrize("of_blocks", [1, 3, 20])
@pytest.mark.parametrize("cut", range(len(MIXED) + 1))
def test_a_message_is_one_row_where_its_last_chunk_is_wherever_the_topic_is_cut(cut: int, of_blocks: int) -> None:
    expected = [(0, b"a"), (0, b"b"), (3, b"c"), (5, b"other"), (7, LONG), (8, b"d")]
    assert values(read(MIXED, [cut], of_blocks)) == expected


def test_each_entry_may_be_a_split_of_its_own() -> None:
    assert [each[0] for each in read(MIXED, list(range(1, len(MIXED))))] == [0, 0, 3, 5, 7, 8]


@st.composite
def topics(draw: st.DrawFn) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Producers whose chunks come between each other's; each sends some of its last ones again, as after a lost connection."""
    chance = random.Random(draw(st.integers(0, 1 << 30)))
    lines: list[list[tuple[bytes, bytes | None]]] = []
    for producer in "pqr":
        line: list[tuple[bytes, bytes | None]] = []
        for number in range(draw(st.integers(0, 3))):
            payload = chance.randbytes(chance.randrange(1, 40))
            parts = in_chunks(f"{producer}-{number}", payload, draw(st.integers(2, 4)))
            again = draw(st.integers(0, len(parts) - 1))  # the first `again` are acknowledged: the others come once more
            stop = draw(st.integers(again, len(parts)))
            line += [(each, None) for each in parts[:stop]]
            is_whole = stop == len(parts)
            line = [*line[:-1], (parts[-1], payload)] if is_whole else line
            line += [(each, None) for each in parts[again:-1]]
            line.append((parts[-1], payload if again == 0 or not is_whole else None))
        lines.append(line)
    merged: list[tuple[bytes, bytes | None]] = []
    while any(lines):
        merged.append(chance.choice([each for each in lines if each]).pop(0))
    return [each for each, _ in merged], [(at, payload) for at, (_, payload) in enumerate(merged) if payload is not None]


@settings(max_examples=150, deadline=None)
@given(topics(), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 5))
def test_chunks_that_come_between_others_and_again_are_their_messages_once(
    made: tuple[list[bytes], list[tuple[int, bytes]]], cuts: list[int], of_blocks: int
) -> None:
    topic, expected = made
    assert values(read(topic, [min(each, len(topic)) for each in cuts], of_blocks)) == expected


def test_the_columns_of_a_chunked_message_come_from_its_last_chunk() -> None:
    parts = in_chunks("p-1", LONG, 3, partition_key="k")
    topic = [with_index(each, 40 + at) for at, each in enumerate(parts)]
    [found] = whole_messages([rows(topic, 0, 3)], lambda place: iter(()), True)
    [row] = batch_of(found, "t", ["key", "index", "sequence_id", "producer", "message_id"]).to_pylist()
    assert (row["key"], row["index"], row["sequence_id"], row["producer"]) == (b"k", 42, 5, "p")
    assert row["message_id"] == {"ledger_id": LEDGER, "entry_id": 2, "batch_index": -1}


def test_a_message_that_was_compressed_and_then_cut_is_as_it_was() -> None:
    whole = batch([single(b"x" * 1000)], compressed=True)
    about = metadata(1, compression=1, uncompressed_size=2000)
    payload = bytes(cramjam.lz4.compress_block(b"z" * 2000, store_size=False))
    parts = []
    for number, part in enumerate((payload[:5], payload[5:])):
        about.uuid, about.chunk_id, about.num_chunks_from_msg, about.total_chunk_msg_size = "p-1", number, 2, len(payload)
        parts.append(payload_section(about, part))
    assert values(read([parts[0], whole, parts[1]], [2])) == [(1, b"x" * 1000), (2, b"z" * 2000)]


# ---- What is not there


def test_a_message_whose_first_chunks_were_deleted_is_a_row_with_the_reason() -> None:
    topic = [*in_chunks("p-1", LONG, 4)[2:], payload_section(metadata(), b"d")]
    (at, _, reason), other = read(topic, [])
    assert (at, other) == (1, (2, b"d", None))
    assert reason == "t at 7:1: it is the last of 4 chunks of a message, and chunk 0 (of 0 to 3) is not before it"


def test_a_message_without_one_in_the_middle_is_a_row_with_the_reason_wherever_it_is_cut() -> None:
    parts = in_chunks("p-1", LONG, 4)
    topic = [parts[0], parts[2], parts[3]]
    for cut in range(4):
        [(at, _, reason)] = read(topic, [cut])
        assert at == 2
        assert reason is not None
        assert "chunk 1 (of 0 to 3) is not before it" in reason


def test_a_message_that_was_never_finished_is_none() -> None:
    """The producer was not told that the message is published, and no client gets it."""
    topic = [*in_chunks("p-1", LONG, 3)[:2], *in_chunks("p-2", b"next", 2)]
    assert values(read(topic, [])) == [(3, b"next")]


def test_a_damaged_chunk_is_an_error_of_its_own_and_of_its_message() -> None:
    parts = in_chunks("p-1", LONG, 3)
    hurt = bytearray(parts[1])
    hurt[-1] ^= 1
    found = read([parts[0], bytes(hurt), parts[2]], [])
    assert [(at, reason and reason.partition(": ")[2][:30]) for at, _, reason in found] == [
        (1, "its checksum is wrong"),
        (2, "it is the last of 3 chunks of "),
    ]


def test_chunks_that_do_not_have_the_bytes_of_their_message_are_an_error() -> None:
    parts = [chunk("p-1", number, 2, b"abc", 7) for number in range(2)]
    [(_, _, reason)] = read(parts, [])
    assert reason == "t at 7:1: its 2 chunks have 6 bytes, and it says that it has 7"


def test_others_are_looked_for_up_to_a_distance() -> None:
    first, last = in_chunks("p-1", b"abcd", 2)
    topic = [first, *[payload_section(metadata(producer="q"), b"-")] * 20, last]
    assert read(topic, [5])[-1] == (21, b"abcd", None)
    assert read(topic, [5], distance=10)[-1][2] is not None


def test_the_search_ends_where_the_producer_sent_another_message() -> None:
    parts = in_chunks("p-2", LONG, 3)
    topic = [*[payload_section(metadata(producer="q"), b"-")] * 50, *in_chunks("p-1", b"abcd", 2), parts[2]]
    asked = []

    def counted(place: Place) -> Iterator[Iterator[Rows]]:
        for each in windows(topic, place):
            asked.append(1)
            yield each

    found = list(whole_messages([rows(topic, 52, 53)], counted, True))
    assert found[0].errors != [""]
    assert len(asked) == 1


# ---- Memory


def test_chunks_that_wait_are_bounded_and_what_was_forgotten_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_BYTES_MAX", 1000)
    held = []
    keep = chunks.OpenMessages._keep

    def counted(self: chunks.OpenMessages, uuid: str, each: chunks.Chunk) -> None:
        keep(self, uuid, each)
        held.append(self.held_bytes)

    monkeypatch.setattr(chunks.OpenMessages, "_keep", counted)
    payload = numpy.arange(600, dtype=numpy.uint8).tobytes()
    producers = [in_chunks(f"{name}-1", payload, 2) for name in "pqrstu"]
    topic = [first for first, _ in producers] + [last for _, last in producers]
    assert [each for _, each in values(read(topic, []))] == [payload] * 6
    assert max(held) <= 1000


def test_a_message_that_is_too_long_is_an_error_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MESSAGE_BYTES_MAX", 100)
    monkeypatch.setattr(module, "MESSAGE_BYTES_MAX", 100)
    [(_, _, reason)] = read(in_chunks("p-1", LONG, 3), [])
    assert reason == "t at 7:2: a message in chunks of 768 bytes together; 100 are read"


def test_ranges_before_a_place_are_the_last_entries_there() -> None:
    ledgers = [Ledger(1, 5, 50), Ledger(3, 0, 0), Ledger(4, 3, 30)]
    every = [Place(1, entry) for entry in range(5)] + [Place(4, entry) for entry in range(3)]
    for end in (*every, Place(4, 3)):
        for count in range(10):
            found = [
                Place(each.ledger_id, entry)
                for each in ranges_before(ledgers, end, count)
                for entry in range(each.first_entry_id, each.end_entry_id)
            ]
            before = [place for place in every if place < end]
            assert found == before[max(0, len(before) - count) :]
    assert ranges_between(ledgers, EARLIEST, EARLIEST) == []
