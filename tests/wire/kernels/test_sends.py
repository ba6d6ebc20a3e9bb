"""wire.kernels.sends: frames to runs, runs to receipts, compiled and not."""

from array import array
from types import ModuleType

import pytest

from tests.wire.both_kernels import both
from tests.wire.frame_samples import metadata, section, send, unframe
from wire.run import FLAG_CHUNK, FLAG_MARKER, EntryBatch, SendRun

BOTH = pytest.mark.parametrize("sends", both("sends"), ids=["plain", "installed"])
BIG = (1 << 64) - 1


def take(sends: ModuleType, data: bytes, **bounds: int) -> SendRun | None:
    run: SendRun | None = sends.take_sends(data, 0, len(data), 36, bounds.pop("entries_max", 1000), **bounds)
    return run


def payloads(run: SendRun) -> list[bytes]:
    offsets, header = run.entries.offsets, run.entries.header_bytes
    return [bytes(run.entries.buffer[offsets[i] + header : offsets[i + 1]]) for i in range(run.entries.count)]


@BOTH
def test_consecutive_sends_of_one_producer_become_one_run(sends: ModuleType) -> None:
    bodies = [section(metadata(sequence_id=i).SerializeToString(), bytes([i]) * i) for i in range(5)]
    data = b"".join(send(7, 100 + i, body, num_messages=i + 1) for i, body in enumerate(bodies))
    run = take(sends, data)
    assert run is not None
    assert (run.producer_id, run.end, run.flags, run.bad_checksum_index) == (7, len(data), 0, -1)
    assert run.sequence_ids == array("Q", range(100, 105))
    assert run.highest_sequence_ids == array("Q", [0] * 5)
    assert run.entries.message_count == 15
    assert payloads(run) == bodies
    assert run.entries.payload_bytes == sum(map(len, bodies))
    assert all(run.entries.buffer[offset : offset + 36] == bytes(36) for offset in run.entries.offsets[:-1])


@BOTH
def test_a_run_ends_at_another_producer_an_unfinished_frame_or_the_bound(sends: ModuleType) -> None:
    data = send(1, 0) + send(1, 1) + send(2, 0)
    run = take(sends, data)
    assert run is not None
    assert run.end == len(send(1, 0)) * 2
    bounded = take(sends, data, entries_max=1)
    assert bounded is not None
    assert bounded.entries.count == 1
    for cut in range(len(send(1, 0))):
        assert take(sends, data[:cut]) is None


@BOTH
def test_flags_and_highest_sequence_ids_are_kept(sends: ModuleType) -> None:
    data = send(1, BIG, is_chunk=True) + send(1, 5, marker=True, highest_sequence_id=BIG) + send(1, 6, is_chunk=False)
    run = take(sends, data)
    assert run is not None
    assert run.flags == FLAG_CHUNK | FLAG_MARKER
    assert list(run.sequence_ids) == [BIG, 5, 6]
    assert list(run.highest_sequence_ids) == [0, BIG, 0]


@BOTH
def test_a_wrong_checksum_ends_the_run_before_it_and_is_alone_in_its_own(sends: ModuleType) -> None:
    wrong = bytearray(section(b"", b"body"))
    wrong[-1] ^= 1
    data = send(1, 0) + send(1, 1, bytes(wrong)) + send(1, 2)
    good = take(sends, data)
    assert good is not None
    assert (good.entries.count, good.bad_checksum_index) == (1, -1)
    bad = take(sends, data[good.end :])
    assert bad is not None
    assert (bad.entries.count, bad.bad_checksum_index, list(bad.sequence_ids)) == (1, 0, [1])


@BOTH
def test_a_payload_without_checksum_is_taken(sends: ModuleType) -> None:
    body = section(metadata().SerializeToString(), b"x", checksum=False)
    run = take(sends, send(1, 0, body))
    assert run is not None
    assert payloads(run) == [body]


@BOTH
@pytest.mark.parametrize(
    "odd",
    [
        send(1, 0, txnid_least_bits=0),
        send(1, 0, txnid_most_bits=1),
        send(1, 0, num_messages=0),
        send(1, 0, num_messages=-1),
        send(1, 0, num_messages=(1 << 20) + 1),
        send(1, 0, b""),
        send(1, 0, b"\x0e\x01\0\0\0\0\0\0\0"),
        send(1, 0, b"\x0e\x02\0\0\0\0" + section()),
    ],
)
def test_a_send_that_is_not_plain_is_left_to_the_slow_path(sends: ModuleType, odd: bytes) -> None:
    assert take(sends, odd) is None
    run = take(sends, send(1, 0) + odd)
    assert run is not None
    assert run.entries.count == 1


@BOTH
def test_a_frame_over_the_bound_is_not_taken(sends: ModuleType) -> None:
    data = send(1, 0, section(b"", bytes(100)))
    assert take(sends, data, frame_bytes_max=len(data)) is not None
    assert take(sends, data, frame_bytes_max=len(data) - 1) is None


@BOTH
def test_bounds_outside_the_buffer_are_refused(sends: ModuleType) -> None:
    with pytest.raises(ValueError, match="bytes"):
        sends.take_sends(b"abc", 0, 4, 36, 10)
    with pytest.raises(ValueError, match="bytes"):
        sends.take_sends(b"abc", -1, 3, 36, 10)


@BOTH
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_run_starts_anywhere_in_any_kind_of_buffer(sends: ModuleType, kind: type) -> None:
    data = b"junk" + send(1, 9) + b"junk"
    run = sends.take_sends(kind(data), 4, len(data), 36, 10)
    assert (run.end, list(run.sequence_ids)) == (len(data) - 4, [9])


def sent(producer_id: int, ids: list[tuple[int, int]]) -> SendRun:
    batch = EntryBatch(bytearray(), array("I", [0] * (len(ids) + 1)), 36, len(ids))
    return SendRun(producer_id, batch, array("Q", [i for i, _ in ids]), array("Q", [h for _, h in ids]), 0, 0)


@BOTH
def test_receipts_say_where_each_message_is_stored(sends: ModuleType) -> None:
    run = sent(BIG, [(0, 0), (300, 0), (BIG, BIG)])
    receipts = [command.send_receipt for command, rest in unframe(sends.send_receipts(run, 1 << 40, 126)) if not rest]
    assert [r.producer_id for r in receipts] == [BIG] * 3
    assert [(r.sequence_id, r.highest_sequence_id) for r in receipts] == [(0, 0), (300, 0), (BIG, BIG)]
    assert [(r.message_id.ledger_id, r.message_id.entry_id) for r in receipts] == [(1 << 40, e) for e in (126, 127, 128)]


@BOTH
def test_a_receipt_is_what_apaches_broker_writes(sends: ModuleType) -> None:
    golden = bytes.fromhex("000000140000001008073a0c080310051a04084d10082006")  # Commands.newSendReceipt(3, 5, 6, 77, 8)
    assert sends.send_receipts(sent(3, [(5, 6)]), 77, 8) == golden


@BOTH
def test_receipts_of_non_persistent_messages_share_one_id(sends: ModuleType) -> None:
    run = sent(4, [(1, 0), (2, 0), (BIG, BIG)])
    for ledger_id, entry_id, said in ((0, 0, 0), (-1, -1, BIG)):
        receipts = [command.send_receipt for command, _ in unframe(sends.send_receipts(run, ledger_id, entry_id, True))]
        assert [(r.message_id.ledger_id, r.message_id.entry_id) for r in receipts] == [(said, said)] * 3
        assert [r.sequence_id for r in receipts] == [1, 2, BIG]


@BOTH
def test_an_empty_run_has_no_receipts(sends: ModuleType) -> None:
    assert sends.send_receipts(sent(1, []), 1, 1) == b""
