"""wire.bookie: both versions against bytes that Apache's client (4.17.3) wrote, and what is wrong with bad ones."""

import contextlib
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.bookie.bookie_samples import KEY, add, answer, batch_read, entry, frame, read
from wire.bookie import version2, version3
from wire.bookie.availability import decode_availability, encode_availability
from wire.bookie.codes import BookieCode
from wire.bookie.frames import frame_end, next_frame
from wire.bookie.requests import Add, Authenticate, BatchRead, DescribeDisk, LongPoll, Read, Rejected, StartTls, WriteLac
from wire.bookie.version3_requests import add_frames
from wire.errors import MalformedCommand, MalformedFrame
from wire.generated import bookie_protocol_pb2 as api
from wire.kernels.bookie_requests import take_adds
from wire.run import EntryRun

CRC32C_ADD = bytes.fromhex(
    "00000041020100002aa226ba095b6969a64871977693b14671710d76000000000000000700000000000000030000000000000002"
    "0000000000000064a2790d2c68656c6c6f"
)
"""Ledger 7, entry 3, last add confirmed 2, length 100, password "pw", payload "hello"."""
LAC_FENCE_READ = bytes.fromhex(
    "0a06080310011805a20626080710ffffffffffffffffff011a140000000000000000000000000000000000000000a00601"
)
"""Version 3, a fencing read of the last entry of ledger 7 with txnId 5 and a key of zeros."""


def test_apaches_add_is_read_byte_for_byte() -> None:
    run = take_adds(CRC32C_ADD, 0, len(CRC32C_ADD), 10, 1 << 20)
    assert run is not None
    assert run.master_key.hex() == "2aa226ba095b6969a64871977693b14671710d76"
    assert (run.entries.ledger_id, run.entries.first_entry_id) == (7, 3)
    assert bytes(run.entries.buffer) == CRC32C_ADD[28:]
    slow = version2.decode(CRC32C_ADD[4:]).operation
    assert isinstance(slow, Add)
    assert (slow.entries.buffer, slow.master_key) == (CRC32C_ADD[28:], run.master_key)


def test_apaches_fencing_read_of_version_3_is_read() -> None:
    request = version3.decode(LAC_FENCE_READ)
    assert request is not None
    assert request.operation == Read(7, -1, bytes(20))
    response = api.Response.FromString(request.answers.read(BookieCode.ENOENTRY, 7, -1)[4:])
    assert (response.header.txnId, response.header.operation, response.status) == (5, api.READ_ENTRY, api.ENOENTRY)
    assert (response.readResponse.status, response.readResponse.entryId) == (api.ENOENTRY, -1)


def test_no_request_of_version_2_is_one_of_version_3() -> None:
    for data in (add(7, 5), read(7, 5), batch_read(7, 5, 1, 1), CRC32C_ADD):
        assert version3.decode(data[4:]) is None
    assert version3.decode(b"") is None
    assert version3.decode(LAC_FENCE_READ[:7]) is None


def test_requests_of_version_2_are_read() -> None:
    assert version2.decode(read(7, -1)[4:]).operation == Read(7, -1)
    assert version2.decode(read(7, 5, flags=5, key=KEY)[4:]).operation == Read(7, 5, KEY)
    assert version2.decode(batch_read(7, 5, 3, 1000)[4:]).operation == BatchRead(7, 5, 77, 3, 1000)
    fencing = frame(batch_read(7, 5, 3, 1000, flags=1)[4:] + KEY)
    assert version2.decode(fencing[4:]).operation == BatchRead(7, 5, 77, 3, 1000, KEY)
    message = api.AuthMessage(authPluginName="plugin", payload=b"x").SerializeToString()
    request = version2.decode(b"\x02\x03\0\0" + message)
    assert request.operation == Authenticate("plugin", b"x")
    assert request.answers.authenticated("plugin", b"x") == frame(b"\x02\x03\0\0" + message)


def test_flags_are_read_in_version_2_alone() -> None:
    operation = version2.decode(b"\x01" + read(7, 5, flags=1, key=KEY)[5:]).operation
    assert operation == Read(7, 5)


@pytest.mark.parametrize(
    ("data", "answered"),
    [
        (read(-7, 5), answer(2, 100, -7, 5)),
        (read(7, -2), answer(2, 100, 7, -2)),
        (read(7, 5, flags=1, key=KEY[:-1]), answer(2, 100, 7, 5)),
        (add(7, -1), answer(1, 100, 7, -1)),
        (frame(add(7, 5)[4:28] + entry(7, 5)[:31]), answer(1, 100, 7, 5)),
        (frame(b"\x03" + read(7, 5)[5:]), frame(b"\x03" + answer(2, 103, 7, 5)[5:])),
        (frame(b"\x80" + add(7, 5)[5:]), frame(b"\x80" + answer(1, 103, 7, 5)[5:])),
    ],
)
def test_what_cannot_be_done_is_answered_with_the_protocols_code(data: bytes, answered: bytes) -> None:
    operation = version2.decode(data[4:]).operation
    assert isinstance(operation, Rejected)
    assert operation.answer == answered


@pytest.mark.parametrize("data", [read(7, 5)[:-1], add(7, 5)[:30], b"\0\0\0\0\x02\x09\0\0", batch_read(7, 5, 1, 1)[:-1]])
def test_what_cannot_even_be_answered_is_a_mistake_with_a_reason(data: bytes) -> None:
    with pytest.raises(MalformedCommand):
        version2.decode(data[4:])


def request(operation: api.OperationType, **bodies: object) -> bytes:
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=9)
    return api.Request(header=header, **bodies).SerializeToString()  # type: ignore[arg-type]


def operation_of(data: bytes) -> object:
    decoded = version3.decode(data)
    assert decoded is not None
    return decoded.operation


def test_requests_of_version_3_are_read() -> None:
    one = entry(7, 5)
    body = api.AddRequest(ledgerId=7, entryId=5, masterKey=KEY, body=one, flag=api.AddRequest.RECOVERY_ADD)
    operation = operation_of(request(api.ADD_ENTRY, addRequest=body))
    assert isinstance(operation, Add)
    assert (operation.entries.buffer, operation.master_key, operation.recovery) == (one, KEY, True)
    poll = api.ReadRequest(ledgerId=7, entryId=-1, previousLAC=4, timeOut=100, flag=api.ReadRequest.ENTRY_PIGGYBACK)
    assert operation_of(request(api.READ_ENTRY, readRequest=poll)) == LongPoll(7, 4, 100, True)
    lac = api.WriteLacRequest(ledgerId=7, lac=4, masterKey=KEY, body=(7).to_bytes(8) + (4).to_bytes(8) + b"crc!")
    assert operation_of(request(api.WRITE_LAC, writeLacRequest=lac)) == WriteLac(7, 4, KEY, lac.body)
    info = api.GetBookieInfoRequest(requested=2)
    assert operation_of(request(api.GET_BOOKIE_INFO, getBookieInfoRequest=info)) == DescribeDisk(False, True)
    assert operation_of(request(api.START_TLS, startTLSRequest=api.StartTLSRequest())) == StartTls()


def test_a_recovery_asks_with_priority_so_that_a_full_bookie_takes_its_adds() -> None:
    run = EntryRun(7, 5, entry(7, 5), array("I", (0, len(entry(7, 5)))))
    for recovery, priority in ((True, 100), (False, 0)):
        asked = api.Request.FromString(add_frames(run, 1, KEY, recovery=recovery)[4:])
        assert asked.header.priority == priority
        assert asked.addRequest.HasField("flag") is recovery


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request(api.START_TLS), api.EBADREQ),
        (request(api.RANGE_READ_ENTRY), api.EBADREQ),
        (request(api.ADD_ENTRY), api.EBADREQ),
        (
            request(api.ADD_ENTRY, addRequest=api.AddRequest(ledgerId=7, entryId=6, masterKey=KEY, body=entry(7, 5))),
            api.EBADREQ,
        ),
        (
            request(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=6, flag=api.ReadRequest.ENTRY_PIGGYBACK)),
            api.EBADREQ,
        ),
        (
            request(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=6, flag=api.ReadRequest.FENCE_LEDGER)),
            api.EBADREQ,
        ),
        (request(api.WRITE_LAC, writeLacRequest=api.WriteLacRequest(ledgerId=7, lac=6, masterKey=KEY, body=b"")), api.EBADREQ),
        (LAC_FENCE_READ.replace(b"\x08\x03\x10\x01", b"\x08\x02\x10\x01"), api.EBADVERSION),
    ],
)
def test_version_3_refuses_with_its_codes(data: bytes, status: int) -> None:
    operation = operation_of(data)
    assert isinstance(operation, Rejected)
    assert api.Response.FromString(operation.answer[4:]).status == status


def test_every_code_has_its_status_of_version_3() -> None:
    names = {api.StatusCode.Name(number) for number in api.StatusCode.values()}
    assert names == {code.name for code in BookieCode}


def test_frames_have_bounds() -> None:
    assert next_frame(frame(b"abcdef"), 0, 10, 100) == (b"abcdef", 10)
    assert next_frame(frame(b"abcdef"), 0, 9, 100) is None
    assert frame_end(b"\0\0\0", 0, 3, 100) is None
    for size in (0, 3, 97, (1 << 32) - 1):
        with pytest.raises(MalformedFrame, match="nettyMaxFrameSizeBytes"):
            frame_end(size.to_bytes(4), 0, 4, 100)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_request_or_a_mistake(data: bytes) -> None:
    if version3.decode(data) is None and len(data) >= 4:
        with contextlib.suppress(MalformedCommand):
            version2.decode(data)


@given(st.sets(st.integers(0, 60)))
def test_availability_is_read_as_it_was_written(entries: set[int]) -> None:
    ranges = [(first, first) for first in sorted(entries)]
    decoded = decode_availability(encode_availability(ranges))
    assert {entry_id for first, last in decoded for entry_id in range(first, last + 1)} == entries


def test_apaches_availability_is_read_and_a_striped_ledger_is_one_group() -> None:
    groups = (
        "0" * 32 + "00000003" + "0" * 8,
        ("0" * 15 + "6") * 2 + "00000003" + "0" * 8,
        ("0" * 15 + "c") * 2 + "00000001" + "0" * 8,
    )
    apaches = bytes.fromhex("0000000000000003" + "0" * 112 + "".join(groups))
    assert decode_availability(apaches) == [(0, 2), (6, 8), (12, 12)]
    striped = [(first, first + 1) for first in range(0, 3000, 3)]
    assert len(encode_availability(striped)) == 64 + 24
    assert decode_availability(encode_availability(striped)) == striped
