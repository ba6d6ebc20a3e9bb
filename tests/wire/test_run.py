"""Runs share their buffers: parts of a run, of a batch and of a mix have the bytes and ids of the whole, and no others."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bookie.runs import entries_of, mixed, sealed
from wire.run import EntryRun, SendMix, batch_of

PAYLOADS = st.lists(st.binary(max_size=9), min_size=1, max_size=6)


def run_of(payloads: list[bytes], ledger_id: int = 3, first: int = 10) -> EntryRun:
    batch = batch_of(payloads)
    return EntryRun(ledger_id, first, batch.buffer, batch.offsets)


@given(PAYLOADS)
def test_a_batch_has_room_before_each_payload(payloads: list[bytes]) -> None:
    batch = batch_of(payloads, header_bytes=4)
    assert (batch.count, batch.message_count, batch.payload_bytes) == (len(payloads), len(payloads), sum(map(len, payloads)))
    assert bytes(batch.buffer) == b"".join(b"\0\0\0\0" + payload for payload in payloads)


@given(PAYLOADS, st.data())
def test_a_part_of_a_run_has_the_same_payloads_under_the_same_ids_in_the_same_buffer(
    payloads: list[bytes], data: st.DataObject
) -> None:
    run = run_of(payloads)
    first = data.draw(st.integers(0, len(payloads) - 1))
    count = data.draw(st.integers(1, len(payloads) - first))
    part = run.entries(10 + first, count)
    assert part.buffer is run.buffer
    assert (part.first_entry_id, part.last_entry_id, part.count) == (10 + first, 10 + first + count - 1, count)
    assert [bytes(part.payload(10 + first + at)) for at in range(count)] == payloads[first : first + count]
    assert part.payload_bytes == sum(map(len, payloads[first : first + count]))
    assert part.size_bytes == part.payload_bytes + 36 * count
    assert bytes(part.first_entry)[36:] == payloads[first]


@pytest.mark.parametrize(("first", "count"), [(9, 1), (10, 0), (10, 4), (12, 2), (13, 1)])
def test_entries_that_are_not_in_a_run_are_no_part_of_it(first: int, count: int) -> None:
    with pytest.raises(ValueError, match=r"are not in 10\.\.12"):
        run_of([b"a", b"b", b"c"]).entries(first, count)


def test_a_part_of_a_run_that_is_kept_nowhere_is_kept_nowhere_either() -> None:
    batch = batch_of([b"a", b"b"])
    assert EntryRun(3, 0, batch.buffer, batch.offsets, 36, True).entries(1, 1).is_passing


def test_a_mix_is_named_by_its_first_entry() -> None:
    mix = mixed([sealed(-1 << 40, 5), sealed(9, 0, 2)])
    assert (mix.ledger_id, mix.count) == (-1 << 40, 3)
    assert mix.size_bytes == sum(len(each) for run in (sealed(5, 5), sealed(9, 0, 2)) for each in entries_of(run).values())


def send_mix() -> SendMix:
    """Two messages of producer 1, then three of producer 2."""
    batch = batch_of([b"a", b"bb", b"ccc", b"d", b"e"], header_bytes=4)
    ids, highest = array("Q", [5, 6, 70, 71, 72]), array("Q", [0, 0, 0, 0, 99])
    producers, starts, counts = array("Q", [1, 2]), array("I", [0, 2, 5]), array("I", [2, 30])
    flags, frames = array("B", [0, 32]), array("Q", [100, 200, 350])
    return SendMix(batch.buffer, batch.offsets, 4, producers, starts, counts, flags, frames, ids, highest)


def test_a_part_of_a_mix_of_sends_is_a_run_of_its_producer() -> None:
    mix = send_mix()
    second = mix.run(1)
    assert (second.producer_id, second.flags, second.end, second.bad_checksum_index) == (2, 32, 350, -1)
    assert (list(second.sequence_ids), list(second.highest_sequence_ids)) == ([70, 71, 72], [0, 0, 99])
    assert (second.entries.message_count, bytes(second.entries.buffer)) == (30, b"\0\0\0\0ccc\0\0\0\0d\0\0\0\0e")
    assert list(second.entries.offsets) == [0, 7, 12, 17]
    assert (mix.part_bytes(0), mix.part_bytes(1)) == (3, 5)


def test_a_part_of_a_mix_is_a_copy_unless_it_is_all_of_it() -> None:
    """A part alone hands the buffer over to the ledger, which writes headers into it."""
    mix = send_mix()
    mix.run(0).entries.buffer[0] = 1
    assert mix.buffer[0] == 0
    whole = SendMix(
        mix.buffer, mix.offsets, 4, array("Q", [1]), array("I", [0, 5]), array("I", [5]), array("B", [0]),
        array("Q", [0, 9]), mix.sequence_ids, mix.highest_sequence_ids,
    )  # fmt: skip
    assert whole.run(0).entries.buffer is mix.buffer
