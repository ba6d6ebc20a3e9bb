"""Requests of a client to a bookie, the same in both versions of the protocol, and answers as the version encodes them.

Ids are signed 64-bit; a master key is whatever bytes the client has (Apache's: 20). `entry` is as stored, header included.
"""

from dataclasses import dataclass
from typing import Protocol

from wire.bookie.codes import BookieCode
from wire.run import Buffer, EntryRun

LAST_ENTRY = -1
"""Entry id that means the last entry (BookieProtocol.LAST_ADD_CONFIRMED)."""


@dataclass(frozen=True, slots=True)
class Add:
    """Store one entry, whose header names the ledger and the entry."""

    entries: EntryRun
    master_key: bytes
    recovery: bool


@dataclass(frozen=True, slots=True)
class Read:
    """One entry. `fence_key`: fence the ledger first, with this key."""

    ledger_id: int
    entry_id: int
    fence_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class LongPoll:
    """Wait until the last add confirmed is beyond `previous_lac`; with `piggyback`, give the entry after `previous_lac`."""

    ledger_id: int
    previous_lac: int
    timeout_ms: int
    piggyback: bool


@dataclass(frozen=True, slots=True)
class BatchRead:
    """Entries from `first_entry_id` on; no limit of their number when `count_max` is 0 or less (BP-62)."""

    ledger_id: int
    first_entry_id: int
    request_id: int
    count_max: int
    bytes_max: int
    fence_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class WriteLac:
    """Remember `record` (ledger id, last add confirmed, digest) as the ledger's explicit last add confirmed."""

    ledger_id: int
    last_add_confirmed: int
    master_key: bytes
    record: bytes


@dataclass(frozen=True, slots=True)
class ReadLac:
    """The explicit last add confirmed and the last entry."""

    ledger_id: int


@dataclass(frozen=True, slots=True)
class Force:
    """Answer once everything acknowledged is on disk."""

    ledger_id: int


@dataclass(frozen=True, slots=True)
class ListEntries:
    """Request for the entries of the ledger that are here."""

    ledger_id: int


@dataclass(frozen=True, slots=True)
class DescribeDisk:
    """Request for the size and the free bytes of the disk, and for the socket of local reads."""

    wants_total: bool
    wants_free: bool
    wants_local_reads: bool = False


@dataclass(frozen=True, slots=True)
class Authenticate:
    """One step of an authentication."""

    plugin: str
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class StartTls:
    """Speak TLS from the answer on."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A whole request that cannot be done: `answer` says so to the peer, `reason` to the log."""

    answer: bytes
    reason: str


Operation = (
    Add
    | Read
    | LongPoll
    | BatchRead
    | WriteLac
    | ReadLac
    | Force
    | ListEntries
    | DescribeDisk
    | Authenticate
    | StartTls
    | Rejected
)


class Answers(Protocol):
    """Frames that answer one request. A code other than EOK stands for a failure."""

    def added(self, code: BookieCode, ledger_id: int, entry_id: int) -> bytes: ...
    def read(
        self, code: BookieCode, ledger_id: int, entry_id: int, entry: Buffer = b"", max_lac: int | None = None
    ) -> bytes: ...
    def authenticated(self, plugin: str, payload: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Request:
    """Operation of a request, and the encoder of its answers. `answers` fits `operation`: only version 3 has all operations."""

    operation: Operation
    answers: Answers
