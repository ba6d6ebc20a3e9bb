"""Version 3 of the bookie protocol as a client speaks it: requests to frames, responses to messages. Pure.

One protobuf message for each entry, so this costs a Python statement per entry: version 2 is the one for runs.
"""

from typing import TypeAlias

from google.protobuf.message import DecodeError

from wire.bookie.codes import BookieCode
from wire.bookie.requests import LAST_ENTRY
from wire.errors import MalformedCommand
from wire.generated import bookie_protocol_pb2 as api
from wire.run import EntryRun

DEFERRED_SYNC = 1
"""writeFlags: an add may be answered before it is on disk (WriteFlag.DEFERRED_SYNC)."""
HIGH_PRIORITY = 100
"""Priority of a recovery's adds, with which a bookie takes them although its disk is full (PerChannelBookieClient,
WriteEntryProcessorV3)."""
FREE_AND_TOTAL = api.GetBookieInfoRequest.TOTAL_DISK_CAPACITY | api.GetBookieInfoRequest.FREE_DISK_SPACE

Response: TypeAlias = api.Response


def request_frame(operation: api.OperationType, txn_id: int, priority: int = 0, **bodies: object) -> bytes:
    """`bodies`: the operation's own message under its field's name, as `readRequest`."""
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=txn_id)
    if priority:
        header.priority = priority
    body = api.Request(header=header, **bodies).SerializeToString()  # type: ignore[arg-type]  # the field's own message
    return len(body).to_bytes(4) + body


def add_frames(run: EntryRun, txn_id: int, master_key: bytes, *, recovery: bool = False, is_deferred: bool = False) -> bytes:
    """An add for each entry, under consecutive txnIds from this one on."""
    view, offsets, frames = memoryview(run.buffer), run.offsets, []
    for index in range(run.count):
        add = api.AddRequest(
            ledgerId=run.ledger_id,
            entryId=run.first_entry_id + index,
            masterKey=master_key,
            body=bytes(view[offsets[index] : offsets[index + 1]]),
        )
        if recovery:
            add.flag = api.AddRequest.RECOVERY_ADD
        if is_deferred:
            add.writeFlags = DEFERRED_SYNC
        frames.append(request_frame(api.ADD_ENTRY, txn_id + index, HIGH_PRIORITY if recovery else 0, addRequest=add))
    return b"".join(frames)


def read_frames(ledger_id: int, first_entry_id: int, count: int, txn_id: int) -> bytes:
    """A read of each of `count` entries, under consecutive txnIds."""
    return b"".join(
        request_frame(
            api.READ_ENTRY, txn_id + step, readRequest=api.ReadRequest(ledgerId=ledger_id, entryId=first_entry_id + step)
        )
        for step in range(count)
    )


def last_entry_request(ledger_id: int, fence_key: bytes | None) -> api.ReadRequest:
    """Request for the last entry; with a key, the ledger is fenced before."""
    request = api.ReadRequest(ledgerId=ledger_id, entryId=LAST_ENTRY)
    if fence_key is not None:
        request.masterKey, request.flag = fence_key, api.ReadRequest.FENCE_LEDGER
    return request


def long_poll_request(ledger_id: int, previous_lac: int, timeout_ms: int) -> api.ReadRequest:
    """The answer comes when the last add confirmed is beyond `previous_lac`, or after the time, with the next entry if the
    bookie has it."""
    return api.ReadRequest(
        ledgerId=ledger_id,
        entryId=LAST_ENTRY,
        previousLAC=previous_lac,
        timeOut=timeout_ms,
        flag=api.ReadRequest.ENTRY_PIGGYBACK,
    )


def decode_response(body: bytes) -> Response:
    """MalformedCommand."""
    try:
        response = api.Response.FromString(body)
    except DecodeError as error:
        raise MalformedCommand(f"an answer of {len(body)} bytes that is no Response of version 3") from error
    if not response.IsInitialized():
        raise MalformedCommand(f"an answer of {len(body)} bytes that lacks a required field")
    return response


def code_of(status: api.StatusCode) -> BookieCode:
    """The status as version 2 has it. Protobuf lets no other through."""
    return BookieCode[api.StatusCode.Name(status)]
