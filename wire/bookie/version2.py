"""Version 2 of the bookie protocol, one message at a time: `u32 header | body`, big-endian (BookieProtocol).

Versions 0 to 2 are read alike but for the flags, which only 2 has, and the header of 0, which is the opcode alone.
The kernels take the plain adds and reads; this takes everything and says what is wrong with it.
"""

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from wire.bookie.codes import BookieCode
from wire.bookie.frames import framed
from wire.bookie.requests import Add, Authenticate, BatchRead, Operation, Read, Rejected, Request
from wire.errors import MalformedCommand
from wire.generated.bookie_protocol_pb2 import AuthMessage
from wire.kernels.bookie_responses import batched_entries
from wire.run import WIRE_HEADER_BYTES, Buffer, EntryRun

VERSION = 2
ADD_ENTRY, READ_ENTRY, AUTH, BATCH_READ_ENTRY = 1, 2, 3, 7
FLAG_FENCING, FLAG_RECOVERY_ADD, FLAG_HIGH_PRIORITY = 1, 2, 4
MASTER_KEY_BYTES = 20

_WORD = struct.Struct(">I")
_IDS = struct.Struct(">qq")
_ANSWER = struct.Struct(">Iiqq")  # header, code, ledger, entry
_BATCH = struct.Struct(">qqqiq")  # ledger, first entry, request, count, bytes
_BATCH_ANSWER = struct.Struct(">Iiqqq")  # header, code, ledger, first entry, request


def packet_header(opcode: int, flags: int = 0, version: int = VERSION) -> int:
    return version << 24 | opcode << 16 | flags


@dataclass(frozen=True, slots=True)
class Version2Answers:
    """Answers to a request with this header, its flags left out."""

    header: int

    def added(self, code: BookieCode, ledger_id: int, entry_id: int) -> bytes:
        return framed(_ANSWER.pack(self.header, code, ledger_id, entry_id))

    def read(self, code: BookieCode, ledger_id: int, entry_id: int, entry: Buffer = b"", max_lac: int | None = None) -> bytes:
        """The version has no place for `max_lac`."""
        return framed(_ANSWER.pack(self.header, code, ledger_id, entry_id), entry)

    def batch_read(self, code: BookieCode, request: BatchRead, runs: tuple[EntryRun, ...] = ()) -> bytes:
        head = _BATCH_ANSWER.pack(self.header, code, request.ledger_id, request.first_entry_id, request.request_id)
        return framed(head, *map(batched_entries, runs))

    def authenticated(self, plugin: str, payload: bytes) -> bytes:
        message = AuthMessage(authPluginName=plugin, payload=payload)
        return framed(_WORD.pack(self.header), message.SerializeToString())


BATCH_OVERHEAD_BYTES = 4 + _BATCH_ANSWER.size


def decode(body: bytes) -> Request:
    """The request in a frame's body. MalformedCommand when nothing can be answered to it."""
    (word,) = _WORD.unpack_from(body)
    version, opcode = word >> 24, word >> 16 & 255 if word >> 24 else word & 255
    flags = word & 0xFFFF if version == VERSION else 0
    answers = Version2Answers(word & 0xFFFF0000 if version else word)
    if version > VERSION and opcode in (ADD_ENTRY, READ_ENTRY):
        reason = f"version {version} of the protocol"
        return Request(_rejected(answers, body, opcode, BookieCode.EBADVERSION, reason), answers)
    decoder = _DECODERS.get(opcode) if version <= VERSION else None
    if decoder is None:
        raise MalformedCommand(f"opcode {opcode} of version {version}")
    return Request(decoder(body, flags, answers), answers)


def _decode_add(body: bytes, flags: int, answers: Version2Answers) -> Operation:
    entry = body[4 + MASTER_KEY_BYTES :]
    run = entry_run(entry)
    if isinstance(run, str):
        return _rejected(answers, body, ADD_ENTRY, BookieCode.EBADREQ, run)
    return Add(run, body[4 : 4 + MASTER_KEY_BYTES], bool(flags & FLAG_RECOVERY_ADD))


def entry_run(entry: bytes) -> EntryRun | str:
    """An entry as it came over the wire as a run of one; or why it cannot be stored."""
    if len(entry) < WIRE_HEADER_BYTES:
        return f"an entry of {len(entry)} bytes, which has no room for its {WIRE_HEADER_BYTES} of header"
    ledger_id, entry_id = _IDS.unpack_from(entry)
    if ledger_id < 0 or entry_id < 0:
        return f"an entry with the ids {ledger_id}:{entry_id}"
    return EntryRun(ledger_id, entry_id, entry, array("I", (0, len(entry))), WIRE_HEADER_BYTES)


def _decode_read(body: bytes, flags: int, answers: Version2Answers) -> Operation:
    if len(body) < 20:
        raise MalformedCommand(f"a read of {len(body)} bytes")
    ledger_id, entry_id = _IDS.unpack_from(body, 4)
    if ledger_id < 0 or entry_id < -1:
        return _rejected(answers, body, READ_ENTRY, BookieCode.EBADREQ, f"a read of {ledger_id}:{entry_id}")
    if not flags & FLAG_FENCING:
        return Read(ledger_id, entry_id)
    if len(body) < 20 + MASTER_KEY_BYTES:
        return _rejected(answers, body, READ_ENTRY, BookieCode.EBADREQ, f"a fencing read of {len(body)} bytes: no key")
    return Read(ledger_id, entry_id, body[20 : 20 + MASTER_KEY_BYTES])


def _decode_batch_read(body: bytes, flags: int, answers: Version2Answers) -> Operation:
    if len(body) < 4 + _BATCH.size:
        raise MalformedCommand(f"a batch read of {len(body)} bytes")
    ledger_id, first_entry_id, request_id, count_max, bytes_max = _BATCH.unpack_from(body, 4)
    request = BatchRead(ledger_id, first_entry_id, request_id, count_max, bytes_max)
    key_at = 4 + _BATCH.size
    if ledger_id < 0 or first_entry_id < 0 or (flags & FLAG_FENCING and len(body) < key_at + MASTER_KEY_BYTES):
        reason = f"a batch read of {ledger_id}:{first_entry_id} in {len(body)} bytes"
        return Rejected(answers.batch_read(BookieCode.EBADREQ, request), reason)
    if flags & FLAG_FENCING:
        key = body[key_at : key_at + MASTER_KEY_BYTES]
        return BatchRead(ledger_id, first_entry_id, request_id, count_max, bytes_max, key)
    return request


def _decode_auth(body: bytes, flags: int, answers: Version2Answers) -> Operation:
    try:
        message = AuthMessage.FromString(body[4:])
    except DecodeError as error:
        raise MalformedCommand(f"an unreadable authentication message of {len(body)} bytes") from error
    return Authenticate(message.authPluginName[:256], message.payload)


def _rejected(answers: Version2Answers, body: bytes, opcode: int, code: BookieCode, reason: str) -> Rejected:
    """With the ids that the request names, as far as it is long enough to name them."""
    ids_at = 4 + (MASTER_KEY_BYTES if opcode == ADD_ENTRY else 0)
    if len(body) < ids_at + _IDS.size:
        raise MalformedCommand(f"a request of {len(body)} bytes with opcode {opcode}: {reason}")
    ledger_id, entry_id = _IDS.unpack_from(body, ids_at)
    return Rejected(answers.read(code, ledger_id, entry_id), reason)


_DECODERS: dict[int, Callable[[bytes, int, Version2Answers], Operation]] = {
    ADD_ENTRY: _decode_add,
    READ_ENTRY: _decode_read,
    AUTH: _decode_auth,
    BATCH_READ_ENTRY: _decode_batch_read,
}
