"""UnderreplicationStore: the under-replication tree in the metadata store, shared with Apache's auditors and workers.

Ledgers that lack copies (`mark_missing`, `ledger_ids`), the lock of each repair (ephemeral), whether repairs are allowed
(`disable`), and how long a lost bookie may take to come back. As BookKeeper's ZkLedgerUnderreplicationManager, but for one
thing: a mark that is there already is written again. A worker deletes the mark at the version that it read, and so never one
that was made after it had looked; Apache's leaves the node as it is, and such a mark can be lost.
"""

from collections.abc import AsyncIterator, Collection

from bookkeeper.repair.errors import IncompatibleUnderreplication, RepairError
from bookkeeper.repair.underreplication.tree import (
    CHECK_ALL_LEDGERS_CTIME,
    DISABLED,
    LAYOUT,
    LEDGERS,
    LOCKS,
    LOST_BOOKIE_RECOVERY_DELAY,
    HeldLedger,
    MalformedUnderreplication,
    UnderreplicatedLedger,
    check_layout,
    decode_checked_all,
    decode_ledger,
    decode_lock,
    encode_checked_all,
    encode_ledger,
    encode_lock,
    layout_text,
    ledger_id_of,
    ledger_path,
    lock_path,
    merged,
)
from metadata.store import (
    MUST_NOT_EXIST,
    BadVersion,
    MetadataError,
    MetadataStore,
    NoNode,
    NotEmpty,
    OutcomeUnknown,
)
from ports.clock import Clock
from ports.rng import Rng

WRITE_ATTEMPTS_MAX = 100
"""Each lost round is another client's progress."""


class UnderreplicationStore:
    """`owner` is the name that this process's locks hold. `initialise` first. Every call may raise MetadataError."""

    def __init__(self, store: MetadataStore, clock: Clock, owner: str, *, keeps_time: bool = True) -> None:
        self._store, self._clock, self._owner, self._keeps_time = store, clock, owner, keeps_time

    async def initialise(self) -> None:
        """Make the layout where there is none. IncompatibleUnderreplication."""
        found = await self._store.get(LAYOUT)
        if found is None:
            try:
                await self._store.put(LAYOUT, layout_text(), MUST_NOT_EXIST)
            except BadVersion:
                found = await self._store.get(LAYOUT)
        if found is not None:
            try:
                check_layout(found.value)
            except MalformedUnderreplication as error:
                raise IncompatibleUnderreplication(f"{LAYOUT}: {error}") from error
        for path in (LEDGERS, LOCKS):
            if not await self._store.exists(path):
                await self._create(path)

    # Marks

    async def mark_missing(self, ledger_id: int, replicas: Collection[str]) -> None:
        """These bookies lack entries of the ledger, or are lost. A marked ledger keeps its time, and other bookies."""
        path = ledger_path(ledger_id)
        now_ms = self._clock.now_ms() if self._keeps_time else None
        for _ in range(WRITE_ATTEMPTS_MAX):
            found = await self._store.get(path)
            version = MUST_NOT_EXIST
            ledger = UnderreplicatedLedger(tuple(dict.fromkeys(replicas)), now_ms)
            if found is not None:
                ledger, version = merged(_readable(found.value), replicas), found.stat.version
            try:
                await self._store.put(path, encode_ledger(ledger), version)
            except (BadVersion, NoNode, OutcomeUnknown):
                continue  # somebody else has marked it, or repaired it, and the nodes above may be gone with that
            return
        raise RepairError(f"{path} changed {WRITE_ATTEMPTS_MAX} times while it was to be written")

    async def marked(self, ledger_id: int) -> UnderreplicatedLedger | None:
        """None: it is not marked."""
        found = await self._store.get(ledger_path(ledger_id))
        return None if found is None else _readable(found.value)

    async def ledger_ids(self, rng: Rng | None = None) -> AsyncIterator[int]:
        """Ids of all marked ledgers, ascending; with `rng` in an order that differs from one worker to the next."""
        waiting = [LEDGERS]
        while waiting:
            path = waiting.pop()
            names = await self._store.children(path)
            if rng is not None:
                names.sort(key=lambda _: rng.random())
            for name in names:
                ledger_id = ledger_id_of(name)
                if ledger_id is not None:
                    yield ledger_id
            waiting += [f"{path}/{name}" for name in reversed(names) if ledger_id_of(name) is None]

    # Locks

    async def locked_ids(self) -> frozenset[int]:
        """Ledgers with a repair lock."""
        ids = (ledger_id_of(name) for name in await self._store.children(LOCKS))
        return frozenset(ledger_id for ledger_id in ids if ledger_id is not None)

    async def lock_owner(self, ledger_id: int) -> str | None:
        """Owner of the ledger's lock; None: it has no lock."""
        found = await self._store.get(lock_path(ledger_id))
        if found is None:
            return None
        try:
            return decode_lock(found.value)
        except MalformedUnderreplication as error:
            return f"unknown ({error})"

    async def lock(self, ledger_id: int) -> bool:
        """The lock alone, whether the ledger is marked or not; False: another has it."""
        try:
            await self._store.put(lock_path(ledger_id), encode_lock(self._owner), MUST_NOT_EXIST, ephemeral=True)
        except BadVersion:
            return False
        return True

    async def take(self, ledger_id: int) -> HeldLedger | None:
        """None: another has it, or it is not marked any more."""
        if not await self.lock(ledger_id):
            return None
        try:
            found = await self._store.get(ledger_path(ledger_id))
        except MetadataError:
            await self.release(ledger_id)
            raise
        if found is None:
            await self.release(ledger_id)
            return None
        return HeldLedger(ledger_id, _readable(found.value).missing_replicas, found.stat.version)

    async def release(self, ledger_id: int) -> None:
        """Release the lock; the mark stays, and any worker may try."""
        await self._delete(lock_path(ledger_id))

    async def release_own(self, ledger_id: int) -> None:
        """Release a lock that another worker may have by now, unless it has."""
        if await self.lock_owner(ledger_id) == self._owner:
            await self.release(ledger_id)

    async def mark_replicated(self, held: HeldLedger) -> bool:
        """The mark goes, and the lock; False: it was marked again meanwhile, and that mark stays."""
        path = ledger_path(held.ledger_id)
        is_done = True
        try:
            await self._store.delete(path, held.version)
        except BadVersion:
            is_done = False
        except NoNode:
            is_done = True  # somebody else was faster
        if is_done:
            await self._delete_empty_parents(path)
        await self.release(held.ledger_id)
        return is_done

    async def _delete_empty_parents(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        while parent != LEDGERS:
            try:
                await self._store.delete(parent)
            except (NotEmpty, NoNode):
                return
            parent = parent.rpartition("/")[0]

    # For the whole cluster

    async def is_enabled(self) -> bool:
        """Whether ledgers may be repaired."""
        return not await self._store.exists(DISABLED)

    async def disable(self) -> None:
        """Disable repair: none begins, and no bookie counts as lost. Disabling twice is fine."""
        await self._create(DISABLED)

    async def enable(self) -> None:
        """Enabling twice is fine."""
        await self._delete(DISABLED)

    async def lost_bookie_recovery_delay(self) -> int | None:
        """Seconds; None: not set."""
        found = await self._store.get(LOST_BOOKIE_RECOVERY_DELAY)
        if found is None:
            return None
        try:
            return int(found.value)
        except ValueError:
            raise RepairError(f"{LOST_BOOKIE_RECOVERY_DELAY} is {found.value[:40]!r}: expected seconds as a number") from None

    async def initialise_lost_bookie_recovery_delay(self, seconds: int) -> None:
        """Set the delay unless it is set."""
        try:
            await self._store.put(LOST_BOOKIE_RECOVERY_DELAY, b"%d" % seconds, MUST_NOT_EXIST)
        except BadVersion:
            return

    async def set_lost_bookie_recovery_delay(self, seconds: int) -> None:
        """Auditors watch the node, and audit anew: Apache's tools trigger an audit in this way."""
        await self._store.put(LOST_BOOKIE_RECOVERY_DELAY, b"%d" % seconds)

    async def checked_all_at_ms(self) -> int | None:
        """Time of the last look at the copies of all ledgers; None: never, as far as is known."""
        found = await self._store.get(CHECK_ALL_LEDGERS_CTIME)
        try:
            return None if found is None else decode_checked_all(found.value)
        except MalformedUnderreplication:
            return None

    async def set_checked_all_at_ms(self, at_ms: int) -> None:
        await self._store.put(CHECK_ALL_LEDGERS_CTIME, encode_checked_all(at_ms))

    async def _create(self, path: str) -> None:
        try:
            await self._store.put(path, b"", MUST_NOT_EXIST)
        except BadVersion:
            return

    async def _delete(self, path: str) -> None:
        try:
            await self._store.delete(path)
        except NoNode:
            return


def _readable(value: bytes) -> UnderreplicatedLedger:
    """A mark counts whatever its value: the bookies are asked which copies they lack."""
    try:
        return decode_ledger(value)
    except MalformedUnderreplication:
        return UnderreplicatedLedger(())
