"""CountedAdds: adds of one ledger under way, in order, within its bounds; and its parts, as long as nothing fails.

Parts (`parts`) of a ledger without failures are counted: each bookie that has stored one is a bit in it, and it is confirmed
when an ack quorum has it and all before it are. The quorum tracker sees none of them. With the first failure, and with the
first run among them, the tracker is told of all pending ones and of the bookies that have them, as if it had seen them all;
from there on it decides, until nothing is pending. Bounds: see `replicated_adds`.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from bookkeeper.ledgers import LedgerError
from bookkeeper.write.parts import Part, Route
from bookkeeper.write.quorum_tracker import Quorum, QuorumTracker
from ports.loop.queue_on_demand import queued, without_first
from wire.kernels.rows import OUTSTANDING_BYTES_MAX as OUTSTANDING_BYTES_MAX
from wire.kernels.rows import OUTSTANDING_ENTRIES_MAX as OUTSTANDING_ENTRIES_MAX
from wire.kernels.rows import AddsRow

NO_PIECE = -1
"""Number of a part that the tracker does not know."""


@dataclass(frozen=True, slots=True)
class AddRules:
    """Rules of a client's adds. `explicit_lac_seconds`: interval in which readers are notified of the last confirmed entry.

    A time of 0 is none: an append waits for its quorum without end, and readers are not notified.
    """

    delays_change: bool = False
    quorum_timeout_seconds: float = 0.0
    explicit_lac_seconds: float = 0.0


PLAIN_RULES = AddRules()


class CountedAdds(AddsRow):
    """Counted adds of one ledger. A subclass decides what happens after a failure."""

    __slots__ = ("_has_whole_runs", "_ledger_id", "_loop", "_tracker", "failure")

    def __init__(self, ledger_id: int, quorum: Quorum, last_confirmed: int, rules: AddRules) -> None:
        self.failure: LedgerError | None = None
        self.last_confirmed = last_confirmed
        self.route: Route | None = None
        """None: no parts are taken."""
        self._ledger_id = ledger_id
        self._loop = asyncio.get_running_loop()
        self._tracker = QuorumTracker(quorum, last_confirmed, delays_change=rules.delays_change)
        self._ack_quorum = quorum.ack_quorum
        self._has_whole_runs = not quorum.is_striped
        self._counts = self._has_whole_runs
        """The tracker knows no pending part: all pending adds are parts, and none has failed anywhere."""
        self._pending: deque[Part] | None = None
        """Parts that are not confirmed; None where there are none."""
        self._outstanding_entries = self._outstanding_bytes = 0
        self._quorum_timeout = rules.quorum_timeout_seconds
        self._late_timer: asyncio.TimerHandle | None = None
        self._when_drained: list[asyncio.Future[None]] = []

    def take_part(self, part: Part, first_entry_id: int) -> bool:
        """See `LedgerWriter.take_part`. `together.send` sends its bytes to the bookies of `route`."""
        if self.route is None or not (self._counts or self._may_track()) or not self._has_room(part):
            return False
        assert first_entry_id == self._next_entry_id, f"entry {first_entry_id} of ledger {self._ledger_id} is out of turn"
        part.adds = self
        part.acked = 0
        part.piece = NO_PIECE
        part.ledger_id, part.first_entry_id = self._ledger_id, first_entry_id
        part.last_entry_id = first_entry_id + part.count - 1
        part.last_add_confirmed = self.last_confirmed
        if not self._counts:
            self._track(part)
        self._outstanding_entries += part.count
        self._outstanding_bytes += part.size_bytes
        self._pending = queued(self._pending, part)
        if self._quorum_timeout and self._late_timer is None:
            self._start_timer()
        return True

    @property
    def _next_entry_id(self) -> int:
        """Entry that follows all that was appended."""
        return (self._pending[-1].last_entry_id if self._pending else self.last_confirmed) + 1

    def part_stored(self, part: Part, seat: int) -> None:
        """A bookie has it. May tell its owner, and those of parts after it."""
        if not self._counts:
            if self._tracker.on_stored(part.piece, seat):
                self._complete()
            return
        part.acked |= 1 << seat
        pending = self._pending
        if pending and pending[0] is part and part.acked.bit_count() >= self._ack_quorum:
            self._confirm_counted()

    def part_failed(self, part: Part, seat: int, error: BaseException) -> None:
        """A bookie refused or lost it."""
        if self._counts:
            self._track_all()
        self._on_error(part.piece, seat, error)

    def is_in(self, seat: int) -> bool:
        """Whether the bookie in this seat is still to store appends."""
        return self.failure is None and self._tracker.index_of(seat) is not None

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        self._tracker.check_invariants()
        for part, following in pairwise(self._pending or ()):
            assert part.last_entry_id < following.first_entry_id, "appends ascend"
        assert self._pending is None or self._pending[0].last_entry_id > self.last_confirmed, "a confirmed append is pending"
        assert not self._counts or self._tracker.is_at_rest, "the tracker knows nothing of parts that are counted"

    def _confirm_counted(self) -> None:
        part = self._take_first()
        self.last_confirmed = part.last_entry_id
        if self._pending and self._pending[0].acked.bit_count() >= self._ack_quorum:
            confirmed = [part]
            while self._pending and self._pending[0].acked.bit_count() >= self._ack_quorum:
                confirmed.append(self._take_first())
            self.last_confirmed = confirmed[-1].last_entry_id
            for part in confirmed:
                part.stored()
        else:
            part.stored()
        if self._when_drained and not self._pending:
            self._tell_drained()

    def _take_first(self) -> Part:
        """Take the oldest pending part out: an ack quorum has it."""
        assert self._pending is not None
        part = self._pending[0]
        self._pending = without_first(self._pending)
        self._outstanding_entries -= part.count
        self._outstanding_bytes -= part.size_bytes
        return part

    def _track_all(self) -> None:
        """Hand all pending parts to the tracker."""
        self._counts = False
        self._tracker.on_counted(self.last_confirmed)
        for part in self._pending or ():
            part.piece = self._tracker.on_append_counted(part.first_entry_id, part.count, part.acked)

    def _track(self, part: Part) -> None:
        (send,) = self._tracker.on_append(part.first_entry_id, part.count)
        part.piece = send.piece

    def _has_room(self, part: Part) -> bool:
        if not self._outstanding_entries:
            return True
        entries, size_bytes = self._outstanding_entries + part.count, self._outstanding_bytes + part.size_bytes
        return entries <= OUTSTANDING_ENTRIES_MAX and size_bytes <= OUTSTANDING_BYTES_MAX

    # Time-outs

    def _start_timer(self) -> None:
        self._late_timer = self._loop.call_later(self._quorum_timeout, self._on_late)

    def _on_late(self) -> None:
        """PendingAddOp's quorum timeout: the first one that is not confirmed has waited too long, or when it will have."""
        self._late_timer = None
        if not self._pending:
            return
        oldest = self._pending[0]
        rest = oldest.began + self._quorum_timeout - self._loop.time()
        if rest > 0:
            self._late_timer = self._loop.call_later(rest, self._on_late)
        else:
            place = f"ledger {self._ledger_id} at entry {oldest.first_entry_id}"
            seconds = f"{self._quorum_timeout:g} s"
            keys = "bookkeeper_addEntryQuorumTimeoutSec, managedLedgerAddEntryTimeoutSeconds"
            self._fail_all(LedgerError(f"{place}: no ack quorum in {seconds} ({keys})"))

    def _stop_timer(self) -> None:
        if self._late_timer is not None:
            self._late_timer.cancel()
            self._late_timer = None

    def _tell_drained(self) -> None:
        waiting, self._when_drained = self._when_drained, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    # Methods of `ReplicatedAdds`

    def _may_track(self) -> bool:
        """No change is under way, and nothing waits that would be overtaken."""
        raise NotImplementedError

    def _complete(self) -> None:
        """The tracker has confirmed more."""
        raise NotImplementedError

    def _on_error(self, piece: int, seat: int, error: BaseException) -> None:
        raise NotImplementedError

    def _fail_all(self, failure: LedgerError) -> None:
        raise NotImplementedError
