"""Version 3 of the bookie protocol: one protobuf Request or Response per frame (BookkeeperProtocol).

Every response names its request's operation and txnId. Its status is given twice, outside and in the operation's own response:
clients look at one or the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from google.protobuf.message import DecodeError

from wire.bookie.codes import BookieCode
from wire.bookie.frames import framed
from wire.bookie.requests import (
    LAST_ENTRY,
    Add,
    Authenticate,
    DescribeDisk,
    Force,
    ListEntries,
    LongPoll,
    Operation,
    Read,
    ReadLac,
    Rejected,
    Request,
    StartTls,
    WriteLac,
)
from wire.bookie.version2 import entry_run
from wire.generated import bookie_protocol_pb2 as api
from wire.generated.bookie_protocol_pb2 import OperationType, ProtocolVersion, ReadRequest
from wire.run import Buffer, EntryRun

MASTER_KEY_BYTES_MAX = 1024
"""Apache's have 20; a key is kept with the ledger."""
LAC_RECORD_BYTES_MAX = 64
"""Ledger id, last add confirmed and the longest digest are 36 bytes."""
LONG_POLL_MS_MAX = 60_000
"""A longer wait is answered after this one; the client asks again (Apache's clients ask for seconds)."""

_STATUS = {code: cast(api.StatusCode, api.StatusCode.Value(code.name)) for code in BookieCode}


@dataclass(frozen=True, slots=True)
class Version3Answers:
    """Answers to a request with this operation and txnId."""

    operation: int
    txn_id: int

    def added(self, code: BookieCode, ledger_id: int, entry_id: int) -> bytes:
        response, status = self._response(code)
        response.addResponse.CopyFrom(api.AddResponse(status=status, ledgerId=ledger_id, entryId=entry_id))
        return _framed(response)

    def read(self, code: BookieCode, ledger_id: int, entry_id: int, entry: Buffer = b"", max_lac: int | None = None) -> bytes:
        response, status = self._response(code)
        read = response.readResponse
        read.status, read.ledgerId, read.entryId = status, ledger_id, entry_id
        if entry:
            read.body = bytes(entry)
        if max_lac is not None:
            read.maxLAC = max_lac
        return _framed(response)

    def authenticated(self, plugin: str, payload: bytes) -> bytes:
        response, _ = self._response(BookieCode.EOK)
        response.authResponse.CopyFrom(api.AuthMessage(authPluginName=plugin, payload=payload))
        return _framed(response)

    def lac_written(self, code: BookieCode, ledger_id: int) -> bytes:
        response, status = self._response(code)
        response.writeLacResponse.CopyFrom(api.WriteLacResponse(status=status, ledgerId=ledger_id))
        return _framed(response)

    def lac(self, code: BookieCode, ledger_id: int, record: bytes = b"", last_entry: Buffer = b"") -> bytes:
        response, status = self._response(code)
        lac = response.readLacResponse
        lac.status, lac.ledgerId = status, ledger_id
        if record:
            lac.lacBody = record
        if last_entry:
            lac.lastEntryBody = bytes(last_entry)
        return _framed(response)

    def forced(self, code: BookieCode, ledger_id: int) -> bytes:
        response, status = self._response(code)
        response.forceLedgerResponse.CopyFrom(api.ForceLedgerResponse(status=status, ledgerId=ledger_id))
        return _framed(response)

    def entries_listed(self, code: BookieCode, ledger_id: int, availability: bytes = b"") -> bytes:
        response, status = self._response(code)
        listed = response.getListOfEntriesOfLedgerResponse
        listed.status, listed.ledgerId = status, ledger_id
        if availability:
            listed.availabilityOfEntriesOfLedger = availability
        return _framed(response)

    def disk_described(
        self,
        code: BookieCode,
        total_bytes: int | None = None,
        free_bytes: int | None = None,
        local_reads: tuple[bytes, bytes] | None = None,
    ) -> bytes:
        """`local_reads`: the name of a socket, and the token of those who may ask there."""
        response, status = self._response(code)
        info = api.GetBookieInfoResponse(status=status, totalDiskCapacity=total_bytes, freeDiskSpace=free_bytes)
        if local_reads is not None:
            info.localReads.socket, info.localReads.token = local_reads
        response.getBookieInfoResponse.CopyFrom(info)
        return _framed(response)

    def tls_started(self, code: BookieCode) -> bytes:
        response, _ = self._response(code)
        if code == BookieCode.EOK:
            response.startTLSResponse.SetInParent()
        return _framed(response)

    def failed(self, code: BookieCode) -> bytes:
        """Failure of an operation that has no answer of its own."""
        return _framed(self._response(code)[0])

    def _response(self, code: BookieCode) -> tuple[api.Response, api.StatusCode]:
        header = api.BKPacketHeader(version=api.VERSION_THREE, operation=OperationType.Name(self.operation), txnId=self.txn_id)
        return api.Response(header=header, status=_STATUS[code]), _STATUS[code]


def _framed(response: api.Response) -> bytes:
    return framed(response.SerializeToString())


def decode(body: bytes) -> Request | None:
    """The request in a frame's body; None when it is no Request: then the peer speaks version 2 (BookieProtoEncoding)."""
    try:
        message = api.Request.FromString(body)
    except DecodeError:
        return None
    if not message.IsInitialized():
        return None
    header = message.header
    answers = Version3Answers(header.operation, header.txnId)
    if header.version != ProtocolVersion.VERSION_THREE:
        reason = f"{ProtocolVersion.Name(header.version)} in a message of version 3"
        return Request(Rejected(answers.failed(BookieCode.EBADVERSION), reason), answers)
    field, decoder = _DECODERS.get(header.operation, ("", None))
    if decoder is None or not message.HasField(field):
        reason = f"{OperationType.Name(header.operation)} is not offered, or came without its message"
        return Request(Rejected(answers.failed(BookieCode.EBADREQ), reason), answers)
    return Request(decoder(getattr(message, field), answers), answers)


def _decode_add(add: api.AddRequest, answers: Version3Answers) -> Operation:
    run = entry_run(add.body)
    if isinstance(run, EntryRun) and (run.ledger_id, run.first_entry_id) != (add.ledgerId, add.entryId):
        run = f"an add of {add.ledgerId}:{add.entryId} whose entry says {run.ledger_id}:{run.first_entry_id}"
    if isinstance(run, EntryRun) and len(add.masterKey) > MASTER_KEY_BYTES_MAX:
        run = f"a master key of {len(add.masterKey)} bytes"
    if isinstance(run, str):
        return Rejected(answers.added(BookieCode.EBADREQ, add.ledgerId, add.entryId), run)
    return Add(run, add.masterKey, add.flag == api.AddRequest.RECOVERY_ADD and add.HasField("flag"))


def _decode_read(read: ReadRequest, answers: Version3Answers) -> Operation:
    ledger_id, entry_id, flag = read.ledgerId, read.entryId, read.flag if read.HasField("flag") else 0
    reason = ""
    if ledger_id < 0 or entry_id < LAST_ENTRY:
        reason = f"a read of {ledger_id}:{entry_id}"
    elif flag == ReadRequest.ENTRY_PIGGYBACK and (entry_id != LAST_ENTRY or not read.HasField("previousLAC")):
        reason = f"a piggyback read of entry {entry_id} without a previous last add confirmed, or not of the last entry"
    elif len(read.masterKey) > MASTER_KEY_BYTES_MAX or (flag == ReadRequest.FENCE_LEDGER and not read.HasField("masterKey")):
        reason = f"a read of {ledger_id}:{entry_id} with a master key of {len(read.masterKey)} bytes"
    if reason:
        return Rejected(answers.read(BookieCode.EBADREQ, ledger_id, entry_id), reason)
    if flag == ReadRequest.FENCE_LEDGER:
        return Read(ledger_id, entry_id, read.masterKey)
    if read.HasField("previousLAC"):
        timeout_ms = min(max(0, read.timeOut), LONG_POLL_MS_MAX)
        return LongPoll(ledger_id, read.previousLAC, timeout_ms, flag == ReadRequest.ENTRY_PIGGYBACK)
    return Read(ledger_id, entry_id)


def _decode_write_lac(write: api.WriteLacRequest, answers: Version3Answers) -> Operation:
    is_its_own = write.body[:16] == write.ledgerId.to_bytes(8, signed=True) + write.lac.to_bytes(8, signed=True)
    if write.ledgerId < 0 or not is_its_own or len(write.body) > LAC_RECORD_BYTES_MAX:
        reason = f"a last add confirmed {write.lac} of ledger {write.ledgerId} with a record of {len(write.body)} bytes"
        return Rejected(answers.lac_written(BookieCode.EBADREQ, write.ledgerId), reason)
    return WriteLac(write.ledgerId, write.lac, write.masterKey[:MASTER_KEY_BYTES_MAX], write.body)


def _decode_auth(message: api.AuthMessage, answers: Version3Answers) -> Operation:
    return Authenticate(message.authPluginName[:256], message.payload)


def _decode_force(message: api.ForceLedgerRequest, answers: Version3Answers) -> Operation:
    if message.ledgerId < 0:
        return Rejected(answers.forced(BookieCode.EBADREQ, message.ledgerId), f"a force of ledger {message.ledgerId}")
    return Force(message.ledgerId)


def _decode_disk(message: api.GetBookieInfoRequest, answers: Version3Answers) -> Operation:
    flags = api.GetBookieInfoRequest
    wanted = (flags.TOTAL_DISK_CAPACITY, flags.FREE_DISK_SPACE, flags.LOCAL_READS)
    return DescribeDisk(*(bool(message.requested & each) for each in wanted))


_Decoder = Callable[..., Operation]
_DECODERS: dict[int, tuple[str, _Decoder | None]] = {
    api.READ_ENTRY: ("readRequest", _decode_read),
    api.ADD_ENTRY: ("addRequest", _decode_add),
    api.AUTH: ("authRequest", _decode_auth),
    api.WRITE_LAC: ("writeLacRequest", _decode_write_lac),
    api.READ_LAC: ("readLacRequest", lambda message, answers: ReadLac(message.ledgerId)),
    api.GET_BOOKIE_INFO: ("getBookieInfoRequest", _decode_disk),
    api.FORCE_LEDGER: ("forceLedgerRequest", _decode_force),
    api.GET_LIST_OF_ENTRIES_OF_LEDGER: (
        "getListOfEntriesOfLedgerRequest",
        lambda message, answers: ListEntries(message.ledgerId),
    ),
    api.START_TLS: ("startTLSRequest", lambda message, answers: StartTls()),
}
"""The field of each operation that is offered, and its decoder."""
