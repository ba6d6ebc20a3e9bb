"""BookieClient: a bookie as the ledger client needs it, whether in this process or across a socket."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from wire.run import EntryMix, EntryRun


class BookieClient(Protocol):
    """One bookie. Errors are `wire.bookie.codes.BookieError`."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """Store a run; done when its journal record is on disk. Futures of one ledger complete in call order.

        EFENCED unless `recovery` when the ledger is fenced; EUA when the key differs from the first add's.
        """

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """A run that starts at `first_entry_id`: at least one entry, at most `count_max`, and at most `bytes_max` bytes
        unless the first entry alone is larger. Stops at a gap. ENOLEDGER, ENOENTRY, EIO."""

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        """Refuse further adds, durably; then the entry with the highest id there, in whose header is what this bookie knows of
        the last add confirmed. Empty: it has none. The digest is the caller's to check."""

    async def last_entry_id(self, ledger_id: int) -> int:
        """The highest entry id stored, -1 for none; ENOLEDGER."""


@runtime_checkable
class PickingBookie(BookieClient, Protocol):
    """A bookie that reads scattered entries in one go."""

    async def pick(self, wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        """Entries of these that can be read at once, a run for each ledger, within `bytes_max` in all.

        In any order; `read` says what is the matter with the others.
        """


class MixTaker(Protocol):
    """Stores entries of many ledgers in one go."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """See `BookieClient.add`."""

    @property
    def writable_ledgers(self) -> Mapping[int, bytes] | None:
        """The ledgers that a mix may be of in this turn, with their master keys; None: any."""

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        """Add entries of `writable_ledgers` with this key, as `add` does. NotAsOne: some were stored and some not, or none;
        each is to be added by itself, whether it is there or not."""


@runtime_checkable
class MixingBookie(BookieClient, Protocol):
    """A bookie that may take mixes."""

    def mixing_for(self, ledger_id: int) -> MixTaker | None:
        """Bookie that takes mixes with entries of this ledger. None: each of its entries is added by itself."""


class KnownLac(NamedTuple):
    """A bookie's knowledge of a ledger's last add confirmed. Empty: nothing. The digests are the reader's to check."""

    record: bytes
    """The explicit one: ledger id, last add confirmed, digest."""
    last_entry: bytes
    """The entry with the highest id there, whose header has the last add confirmed of the time at which it was sent."""


class PolledLac(NamedTuple):
    """The answer to `wait_lac`."""

    last_add_confirmed: int
    entry: bytes
    """The one after the last add confirmed that was named, if it is confirmed and there; otherwise empty."""


class DiskSpace(NamedTuple):
    """Disk space of all ledger directories of a bookie."""

    total_bytes: int
    free_bytes: int


@runtime_checkable
class ExtendedBookie(BookieClient, Protocol):
    """Operations that version 3 of the protocol adds. Errors as `BookieClient`'s; a bookie that cannot is EBADREQ."""

    def add_deferred(self, run: EntryRun, master_key: bytes) -> "asyncio.Future[None]":
        """Add as `add` does, perhaps answered before the entry is on disk: `force` tells when it is."""

    async def force(self, ledger_id: int) -> None:
        """Wait until all entries added before are on disk."""

    async def write_lac(self, ledger_id: int, last_add_confirmed: int, master_key: bytes, record: bytes) -> None:
        """Tell readers the last add confirmed. EREADONLY, EUA; a fence does not keep it out."""

    async def read_lac(self, ledger_id: int) -> KnownLac:
        """ENOLEDGER; ENOENTRY when it knows neither."""

    async def wait_lac(self, ledger_id: int, previous_lac: int, timeout_ms: int) -> PolledLac:
        """Until the last add confirmed is beyond `previous_lac`, or the time is over."""

    async def disk_space(self) -> DiskSpace: ...
    async def list_entries(self, ledger_id: int) -> list[tuple[int, int]]:
        """The ids (first, last) of the runs of entries that are there. ENOLEDGER."""
