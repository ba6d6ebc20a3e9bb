"""The kernels take nothing that the slow path would refuse, read the same out of it, and are the same compiled and plain."""

from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from tests.wire.frame_samples import ack, metadata, section, send
from tests.wire.kernel_checks import check_acks, check_sends

PLAIN_SENDS, SENDS = both("sends")
PLAIN_ACKS, ACKS = both("acks")
U64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
SECTIONS = st.one_of(
    st.just(section(metadata().SerializeToString(), b"hi")), st.binary(max_size=12), st.binary(max_size=9).map(section)
)
SEND_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "num_messages": st.integers(-2, 5),
        "highest_sequence_id": U64,
        "is_chunk": st.booleans(),
        "marker": st.booleans(),
        "txnid_least_bits": U64,
    },
)
SEND = st.builds(
    lambda producer_id, sequence_id, body, fields: send(producer_id, sequence_id, body, **fields),
    st.integers(1, 2),
    U64,
    SECTIONS,
    SEND_FIELDS,
)
ACK = st.builds(ack, st.integers(1, 2), st.lists(st.tuples(U64, U64), max_size=4))


@st.composite
def damaged(draw: Any, frames: st.SearchStrategy[bytes]) -> bytes:
    """A stream of frames in which some bytes are others."""
    data = bytearray(b"".join(draw(st.lists(frames, max_size=5))))
    if data:
        places = draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=3))
        for place, octet in places:
            data[place] = octet
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@given(damaged(SEND), st.sampled_from([0, 32, 36, 40]), st.sampled_from([1, 2, 100]))
@example(send(1, 2) * 3, 36, 100)
def test_a_run_of_sends_is_what_the_frames_say(data: bytes, header_bytes: int, entries_max: int) -> None:
    run = SENDS.take_sends(data, 0, len(data), header_bytes, entries_max)
    assert run == PLAIN_SENDS.take_sends(data, 0, len(data), header_bytes, entries_max)
    if run is not None:
        assert run.entries.count <= entries_max
        check_sends(data, run)
        assert SENDS.send_receipts(run, 3, 1 << 40) == PLAIN_SENDS.send_receipts(run, 3, 1 << 40)


@given(damaged(ACK))
@example(ack(1, [(1, 2), (3, 4)]) * 3)
@example(ack(1, [(1, 2)]) + ack(2, [(3, 4)]) + ack(1, [(1, 3)]) * 2)
def test_a_run_of_acks_is_what_the_frames_say(data: bytes) -> None:
    run = ACKS.take_acks(data, 0, len(data))
    assert run == PLAIN_ACKS.take_acks(data, 0, len(data))
    if run is not None:
        check_acks(data, run)
    mix = ACKS.take_ack_mix(data, 0, len(data), 9)
    assert mix == PLAIN_ACKS.take_ack_mix(data, 0, len(data), 9)
    if mix is not None:
        at = 0
        for consumer_id, ledger_id, entry_id in zip(mix.consumer_ids, mix.ledger_ids, mix.entry_ids, strict=True):
            one = ACKS.take_acks(data[: mix.end], at, mix.end)
            assert (one.consumer_id, list(one.ledger_ids), list(one.entry_ids)) == (consumer_id, [ledger_id], [entry_id])
            at = one.end


@given(st.lists(SEND, min_size=1, max_size=6).map(b"".join), st.data())
def test_every_plain_send_is_taken_however_the_bytes_arrive(data: bytes, draw: Any) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    first = SENDS.take_sends(data, 0, cut, 36, 100)
    at = 0 if first is None else first.end
    second = SENDS.take_sends(data, at, len(data), 36, 100)
    whole = SENDS.take_sends(data, 0, len(data), 36, 100)
    taken = [run for run in (first, second) if run is not None]
    if whole is not None and whole.bad_checksum_index < 0:
        assert sum(run.entries.count for run in taken) >= whole.entries.count


def substitutions(data: bytes, of: int) -> Iterator[bytes]:
    """The data with each of its first `of` bytes replaced by each other byte, and each of them left out."""
    for place in range(of):
        for octet in range(256):
            yield data[:place] + bytes([octet]) + data[place + 1 :]
        yield data[:place] + data[place + 1 :]


def test_no_single_wrong_byte_in_a_send_is_taken_for_anything_else() -> None:
    first = send(1, 300, b"\0\0\0\0", num_messages=2, highest_sequence_id=5)
    for data in substitutions(first + send(1, 301), len(first)):
        run = SENDS.take_sends(data, 0, len(data), 36, 100)
        if run is not None:
            check_sends(data, run)


def test_no_single_wrong_byte_in_an_ack_is_taken_for_anything_else() -> None:
    first = ack(1, [(300, 2), (4, 5)])
    for data in substitutions(first + ack(1, [(6, 7)]), len(first)):
        run = ACKS.take_acks(data, 0, len(data))
        if run is not None:
            check_acks(data, run)


def test_plain_kernels_do_the_same_with_every_wrong_byte() -> None:
    one_send, one_ack = send(1, 300, b"\0\0\0\0"), ack(1, [(300, 2)])
    for data in substitutions(one_send, len(one_send)):
        assert PLAIN_SENDS.take_sends(data, 0, len(data), 0, 9) == SENDS.take_sends(data, 0, len(data), 0, 9)
    for data in substitutions(one_ack, len(one_ack)):
        assert PLAIN_ACKS.take_acks(data, 0, len(data)) == ACKS.take_acks(data, 0, len(data))


def test_a_required_field_that_is_missing_is_never_made_up() -> None:
    for body in (b"\x08\x01", b"\x10\x01", b""):
        command = b"\x08\x06\x32" + bytes([len(body)]) + body
        data = (len(command) + 8).to_bytes(4) + len(command).to_bytes(4) + command + bytes(4)
        assert SENDS.take_sends(data, 0, len(data), 36, 9) is None
    for body in (b"\x08\x01\x1a\x04\x08\x01\x10\x01", b"\x10\x00\x1a\x04\x08\x01\x10\x01", b"\x08\x01\x10\x00\x1a\x02\x08\x01"):
        command = b"\x08\x0a\x52" + bytes([len(body)]) + body
        data = (len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command
        assert ACKS.take_acks(data, 0, len(data)) is None
