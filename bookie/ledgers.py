"""Ledgers: which ledgers this bookie knows, their master keys, which are fenced or were deleted. Pure.

Apache's rules: the first add or fence of an unknown ledger creates it with the key given; a later other key is EUA. An empty
key (a ledger found in the journal without its key record) is replaced by the first real one.
A ledger that was fenced and then deleted stays fenced for a week (apache/bookkeeper#4462): its writer may still be alive.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wire.bookie.codes import BookieCode

TOMBSTONE_MS = 7 * 24 * 3600 * 1000


@dataclass(slots=True)
class LedgerState:
    """Known state of one ledger."""

    ledger_id: int
    master_key: bytes
    fenced: bool = False
    deleted_ms: int = 0
    """Time of the deletion, in ms since the epoch; 0: the ledger is not deleted."""
    suspect: bool = False
    """Some of its entries may be in a file that cannot be read: a miss is no promise. Not stored."""
    limbo: bool = False
    """Some of its entries may have been lost (`bookie.start.limbo`): a miss is no promise."""
    may_return: bool = False
    """The ledger is deleted because other bookies have it: a recovery may bring it back."""
    fence_is_durable: bool = False
    """The fence was put on disk since the start and need not be written again. Not stored."""

    @property
    def is_whole(self) -> bool:
        """Whether an entry that is not found was never here."""
        return not (self.suspect or self.limbo)

    @property
    def is_deleted(self) -> bool:
        return self.deleted_ms > 0


class Ledgers:
    """All ledger states, and which of them changed since they were last stored."""

    def __init__(self) -> None:
        self._states: dict[int, LedgerState] = {}
        self.writable: dict[int, bytes] = {}
        """Master keys of the ledgers that take any add with that key, by ledger."""
        self._changed: dict[int, None] = {}
        self._gone: dict[int, None] = {}

    def __contains__(self, ledger_id: int) -> bool:
        return self.get(ledger_id) is not None

    def get(self, ledger_id: int) -> LedgerState | None:
        """The ledger, unless it is unknown or deleted."""
        state = self._states.get(ledger_id)
        return None if state is None or state.deleted_ms else state

    def was_deleted(self, ledger_id: int) -> bool:
        """A tombstone is left of it."""
        state = self._states.get(ledger_id)
        return state is not None and state.is_deleted

    def is_gone(self, ledger_id: int) -> bool:
        """Whether the ledger was deleted for good."""
        state = self._states.get(ledger_id)
        return state is not None and state.is_deleted and not state.may_return

    def all(self) -> Iterator[LedgerState]:
        """Deleted ones too; ascending."""
        for ledger_id in sorted(self._states):
            yield self._states[ledger_id]

    def live_ids(self) -> list[int]:
        return [state.ledger_id for state in self.all() if not state.is_deleted]

    def limbo_ids(self) -> list[int]:
        """Ids of live ledgers in limbo, ascending."""
        return [state.ledger_id for state in self.all() if state.limbo and not state.is_deleted]

    def load(self, states: Iterable[LedgerState]) -> None:
        """Take the stored states; none of them counts as changed."""
        for state in states:
            self._states[state.ledger_id] = state
            self._writable_changed(state)

    def refusal(self, ledger_id: int, master_key: bytes, *, recovery: bool) -> BookieCode | None:
        """Why an add is refused; None: it is welcome."""
        state = self._states.get(ledger_id)
        if state is None:
            return None
        if state.master_key and state.master_key != master_key:
            return BookieCode.EUA
        if state.fenced and (not recovery or (state.is_deleted and not state.may_return)):
            return BookieCode.EFENCED
        return None

    def ensure(self, ledger_id: int, master_key: bytes) -> bool:
        """Create the ledger, or give it the key that it lacks. True when that changed something."""
        state = self.get(ledger_id)
        if state is not None and (state.master_key or not master_key):
            return False
        if state is None:
            self._states[ledger_id] = LedgerState(ledger_id, master_key, self._was_fenced(ledger_id))
        else:
            state.master_key = master_key
        self._writable_changed(self._states[ledger_id])
        self._touch(ledger_id)
        return True

    def _was_fenced(self, ledger_id: int) -> bool:
        """Whether a ledger that comes back was fenced: its writer may still be alive."""
        state = self._states.get(ledger_id)
        return state is not None and state.fenced

    def fence(self, ledger_id: int) -> None:
        """Fence the ledger: only a recovery adds from now on. An unknown ledger is made."""
        self.ensure(ledger_id, b"")
        state = self._states[ledger_id]
        if not state.fenced:
            state.fenced = True
            self._writable_changed(state)
            self._touch(ledger_id)

    def enter_limbo(self, ledger_ids: Iterable[int]) -> None:
        """These, and all that are known, may lack entries and a fence."""
        for ledger_id in {*ledger_ids, *self.live_ids()}:
            if not self.is_gone(ledger_id):
                self.fence(ledger_id)
                self._states[ledger_id].limbo = True
                self._touch(ledger_id)

    def leave_limbo(self, ledger_id: int) -> None:
        """Every entry that it should have here is here again. It stays fenced."""
        state = self.get(ledger_id)
        if state is not None and state.limbo:
            state.limbo = False
            self._touch(ledger_id)

    def delete(self, ledger_id: int, now_ms: int, *, is_elsewhere: bool = False) -> None:
        """Forget a ledger; a fenced one leaves a tombstone for a week. `is_elsewhere`: a recovery may bring it back."""
        state = self._states[ledger_id]
        if state.fenced:
            state.deleted_ms = now_ms
            state.limbo = False
            state.may_return = is_elsewhere
            self._touch(ledger_id)
        else:
            self._forget(ledger_id)

    def expire_tombstones(self, now_ms: int) -> None:
        for state in list(self.all()):
            if state.is_deleted and state.deleted_ms + TOMBSTONE_MS < now_ms:
                self._forget(state.ledger_id)

    def take_changes(self) -> tuple[list[LedgerState], list[int]]:
        """States to store and ids to strike out, since the last call."""
        changed = [self._states[ledger_id] for ledger_id in self._changed]
        gone = list(self._gone)
        self._changed.clear()
        self._gone.clear()
        return changed, gone

    def has_changes(self) -> bool:
        return bool(self._changed or self._gone)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        for ledger_id, state in self._states.items():
            assert state.ledger_id == ledger_id
            assert state.fenced or not (state.is_deleted or state.limbo), f"ledger {ledger_id} could be written"
            assert state.is_deleted or not state.may_return
        open_ones = [state for state in self._states.values() if state.master_key and not (state.fenced or state.is_deleted)]
        assert self.writable == {state.ledger_id: state.master_key for state in open_ones}
        assert self._changed.keys() <= self._states.keys()
        assert not self._gone.keys() & self._states.keys()

    def _writable_changed(self, state: LedgerState) -> None:
        if state.master_key and not (state.fenced or state.is_deleted):
            self.writable[state.ledger_id] = state.master_key
        else:
            self.writable.pop(state.ledger_id, None)

    def _touch(self, ledger_id: int) -> None:
        self._gone.pop(ledger_id, None)
        self._changed[ledger_id] = None

    def _forget(self, ledger_id: int) -> None:
        del self._states[ledger_id]
        self.writable.pop(ledger_id, None)
        self._changed.pop(ledger_id, None)
        self._gone[ledger_id] = None
