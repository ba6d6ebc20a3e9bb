"""The short way from entries to columns makes what the long way makes of the same entries, or says that they are not for it."""

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode import compiled
from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA, batch_of
from pipeline.pyspark_pulsar.decode.plain import plain_batches, plain_columns
from pipeline.pyspark_pulsar.decode.rows import rows_in_parts, rows_of
from pipeline.pyspark_pulsar.options import Between
from pipeline.pyspark_pulsar.partly import parts_in
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from tests.pipeline.sections import batch, block, metadata, pairs, single, with_index
from wire.payloads import payload_section

pytestmark = pytest.mark.skipif(compiled.entries_kernel is None, reason="the kernels are not compiled")

SHORT = ("key", "value", "topic", "message_id", "publish_time")
_fields = st.fixed_dictionaries(
    {},
    optional={
        "partition_key": st.text(alphabet="abé", max_size=5),
        "sequence_id": st.integers(0, 1 << 62),
        "event_time": st.integers(0, 1 << 42),
        "properties": st.just(pairs(a="b")),
    },
)
_odd = st.sampled_from(
    [{"null_value": True}, {"compacted_out": True}, {"partition_key": "aGk=", "partition_key_b64_encoded": True}]
)
_messages = st.tuples(st.binary(max_size=30), _fields)
_batches = st.lists(_messages, max_size=6)
_of_entries = st.fixed_dictionaries(
    {},
    optional={
        "partition_key": st.just("k"),
        "schema_version": st.just(b"\0" * 8),
        "properties": st.just(pairs(a="b")),
        "highest_sequence_id": st.integers(0, 1 << 40),
        "event_time": st.integers(0, 1 << 42),
        "deliver_at_time": st.integers(-5, 1 << 42),
        "replicated_from": st.just("east"),
    },
)


def _section(messages: list[Any], about: dict[str, Any]) -> bytes:
    return batch([single(body, **each) for body, each in messages], **about)


def _long_way(entries: Any, columns: tuple[str, ...]) -> Any:
    return batch_of(rows_of(entries), "t", columns)


@given(
    st.lists(st.tuples(_batches, _of_entries, st.booleans()), min_size=1, max_size=5),
    st.sets(st.sampled_from(SHORT), min_size=1),
)
def test_plain_batches_are_read_the_short_way_and_alike(found: list[Any], chosen: set[str]) -> None:
    columns = tuple(sorted(chosen))
    sections = [_section(messages, about) for messages, about, _ in found]
    stored = [with_index(each, 9) if indexed else each for each, (_, _, indexed) in zip(sections, found, strict=True)]
    entries = block(*stored)
    batches = plain_batches(entries, True)
    assert batches is not None
    short = plain_columns(batches, "t", columns)
    assert short is not None
    short.validate(full=True)
    assert short.equals(_long_way(entries, columns))
    assert short.schema.types == [SCHEMA.field(name).type for name in columns]
    [rows] = rows_in_parts(entries)
    assert rows.message_count == rows_of(entries).message_count == batches.message_count
    assert (rows.has_chunks, rows.has_transactions, rows.has_errors) == (False, False, False)
    assert batch_of(rows, "t", SCHEMA.names).equals(_long_way(entries, tuple(SCHEMA.names)))


OTHER_KINDS = {
    "not in a batch": payload_section(metadata(1), b"v"),
    "compressed": batch([single(b"v")], compressed=True),
    "of a transaction": batch([single(b"v")], txnid_least_bits=1, txnid_most_bits=1),
    "a marker": batch([single(b"v")], marker_type=0),
    "a chunk": payload_section(metadata(1, chunk_id=0, num_chunks_from_msg=2, uuid="u", total_chunk_msg_size=9), b"v"),
    "encrypted": batch([single(b"v")], encryption_algo="a"),
    "no metadata": payload_section(metadata(1), b"")[:9],
    "its messages cut off": batch([single(b"value")])[:-2],
}


@pytest.mark.parametrize("other", OTHER_KINDS.values(), ids=OTHER_KINDS)
def test_one_entry_of_another_kind_makes_all_of_them_go_the_long_way(other: bytes) -> None:
    entries = block(batch([single(b"v")]), other)
    batches = plain_batches(entries, True)
    assert batches is None or plain_columns(batches, "t", SHORT) is None
    [rows] = rows_in_parts(entries)
    found = wanted_batch(rows, "t", Wanted(SHORT, Between(), "PERMISSIVE"))
    assert found.equals(_long_way(entries, SHORT))


@given(_batches, _odd, st.integers(0, 6))
def test_one_message_that_is_not_its_bytes_makes_its_block_go_the_long_way(
    messages: list[Any], odd: dict[str, Any], at: int
) -> None:
    entries = block(_section([*messages[:at], (b"v", odd), *messages[at:]], {}))
    batches = plain_batches(entries, True)
    assert batches is not None
    assert plain_columns(batches, "t", SHORT) is None
    assert plain_columns(batches, "t", ("publish_time",)) is None
    [rows] = rows_in_parts(entries)
    assert wanted_batch(rows, "t", Wanted(SHORT, Between())).equals(_long_way(entries, SHORT))


@given(st.lists(_batches, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damage_is_found_whichever_way_is_gone(found: list[Any], chance: Any) -> None:
    sections = [bytearray(_section(each, {})) for each in found]
    hurt = chance.choice(sections)
    for _ in range(chance.randrange(1, 4)):
        hurt[chance.randrange(len(hurt))] = chance.choice((0, 1, 0x0E, 0x58, 127, 128, 255))
    entries = block(*map(bytes, sections))
    for verifies in (True, False):
        rows = list(rows_in_parts(entries, verifies))
        expected = rows_of(entries, verifies)
        assert [error for each in rows for error in each.errors] == expected.errors
        asked = Wanted(SHORT, Between(), "PERMISSIVE")
        found_rows = [row for each in rows for row in wanted_batch(each, "t", asked).to_pylist()]
        assert found_rows == batch_of(expected, "t", SHORT).to_pylist()


def test_filters_and_parts_of_batches_hold_for_plain_batches_too() -> None:
    entries = block(*(batch([single(b"a"), single(b"b")], number) for number in range(4)))
    [rows] = rows_in_parts(entries)
    assert rows.batches is not None
    between = Between(starting_time_ms=int(rows.publish_times[2]))
    assert wanted_batch(rows, "t", Wanted(("value",), between)).num_rows == 8 - 2
    parts = parts_in([{"7:1": [0b10]}])
    found = wanted_batch(rows, "t", Wanted(("value",), Between(), parts=parts))
    assert [row["value"] for row in found.to_pylist()] == [b"a", b"b", b"b", b"a", b"b", b"a", b"b"]


def test_a_checksum_that_was_looked_at_is_not_looked_at_again() -> None:
    wrong = bytearray(batch([single(b"v")]))
    wrong[-1] ^= 1
    entries = block(bytes(wrong))
    assert plain_batches(entries, True) is None
    assert plain_batches(entries, False) is not None
    known = type(entries)(entries.data, entries.starts, entries.ends, entries.ledger_ids, entries.entry_ids, True)
    assert plain_batches(known, True) is not None
    assert known.chosen(numpy.array([0])).has_right_checksums
