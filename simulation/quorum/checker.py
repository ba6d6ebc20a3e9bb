"""QuorumChecker: the promises of one replicated ledger, checked at every event. Knows what really is on the bookies.

It sees every add that a bookie answers, beneath the client's counting, so that it does not have to believe that counting:
- an acknowledged entry is on an ack quorum of the bookies that the metadata names for it, then and after every change of them
  (#1591, #4194);
- a last-add-confirmed in an entry's header is never ahead of what is on ack quorums;
- all copies of an entry, on bookies and as read by anybody, are the same bytes (#22906's class);
- a bookie that has answered a fence takes no add but a recovery's;
- everybody who closes or opens the ledger gets the same end and length, for ever; no acknowledged entry is after it, whether it
  was acknowledged before or later; every entry up to it is on an ack quorum.

One bookie may be forgetful: it loses, without knowing it, what it had answered for. An ack quorum with it is no promise then,
and recovery may end the ledger before what was acknowledged; but never before an entry that the writer put on an ack quorum of
the others. All else holds.
Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.write.quorum_tracker import Quorum
from simulation.checks.history import Violation
from wire.run import EntryRun


@dataclass(slots=True)
class _Entry:
    """State of one entry id."""

    stored: bytes = b""
    """Bytes that bookies have, header and digest included; empty: no bookie has any."""
    copies: dict[str, None] = field(default_factory=dict)
    """Bookies that answered an add of it."""
    written: dict[str, None] = field(default_factory=dict)
    """Bookies that answered the writer's add of it."""
    is_acknowledged: bool = False


class QuorumChecker:
    """Checker of one ledger. `metadata` returns the ledger's present metadata in the store."""

    def __init__(self, metadata: Callable[[], LedgerMetadata]) -> None:
        self.end: tuple[int, int] | None = None
        """Last entry id and length, once a client was told."""
        self.acknowledged = 0
        self._metadata = metadata
        self._entries: dict[int, _Entry] = {}
        self._known: LedgerMetadata | None = None
        self.fenced: dict[str, None] = {}
        """Bookies that have answered a fence."""
        self.forgetful = ""
        self.gone = ""
        self.ledger_id = -1
        self.events: dict[str, int] = {}
        self._newest_segment = 0
        self._held_before = 0
        """All entries below were on ack quorums once."""

    def on_fenced(self, bookie: str) -> None:
        """A bookie has answered a fence."""
        if bookie != self.forgetful:
            self.fenced[bookie] = None

    def on_stored(self, bookie: str, run: EntryRun, *, was_fenced: bool = False, recovery: bool = False) -> None:
        """A bookie has answered an add: the run is on its disk. `was_fenced`: before a writer's add came."""
        if was_fenced:
            raise Violation(f"{bookie} has answered a fence, and then taken entry {run.first_entry_id} of the writer")
        self.ledger_id = run.ledger_id
        self.check_moves()
        for index in range(run.count):
            stored = bytes(memoryview(run.buffer)[run.offsets[index] : run.offsets[index + 1]])
            entry_id = run.first_entry_id + index
            entry = self._same_bytes(bookie, entry_id, stored)
            entry.copies[bookie] = None
            if not recovery:
                entry.written[bookie] = None
            self._check_confirmed(entry_id, int.from_bytes(stored[16:24], signed=True))

    def on_acknowledged(self, entry_id: int, payload: bytes) -> None:
        """The writer was told so."""
        self.acknowledged += 1
        self.check_moves()
        entry = self._entries.setdefault(entry_id, _Entry())
        entry.is_acknowledged = True
        if not self._is_held(entry_id):
            raise Violation(
                f"entry {entry_id} is acknowledged, and only {sorted(entry.copies)} have it: {self._where(entry_id)}"
            )
        if entry.stored[-len(payload) :] != payload:
            raise Violation(f"entry {entry_id} is acknowledged with other bytes than are stored")
        self._check_end(entry_id)

    def on_read(self, who: str, run: EntryRun) -> None:
        """Somebody was given these entries as those of the ledger."""
        for index in range(run.count):
            stored = bytes(memoryview(run.buffer)[run.offsets[index] : run.offsets[index + 1]])
            self._same_bytes(who, run.first_entry_id + index, stored)

    def on_segment(self, acknowledged: int) -> None:
        """A client has written to the metadata; to the writer, if it is that, so much was acknowledged before."""
        first, known = self._metadata().segments[-1].first_entry_id, self._newest_segment
        self._newest_segment = first
        if known != first <= acknowledged:
            raise Violation(f"a segment begins with entry {first}, and {acknowledged} was acknowledged before it began")

    def on_ended(self, who: str, last_entry_id: int, length_bytes: int) -> None:
        """Checks the end that a client was told when it closed the ledger, or opened it closed."""
        self.check_moves()
        metadata, end = self._metadata(), (last_entry_id, length_bytes)
        if metadata.state != LedgerState.CLOSED or (metadata.last_entry_id, metadata.length_bytes) != end:
            raise Violation(f"{who} was told the end {end}; the metadata: {metadata.state.name} {metadata.last_entry_id}")
        if self.end not in (None, end):
            raise Violation(f"{who} was told the end {end}, others {self.end}")
        self.end = end
        for entry_id in range(last_entry_id + 1):
            if not self._is_held(entry_id):
                raise Violation(f"closed at {last_entry_id} by {who}, and entry {entry_id} is not on an ack quorum")
        for entry_id in self._entries:
            self._check_end(entry_id)
        length = sum(len(self._entries[entry_id].stored) for entry_id in range(last_entry_id + 1))
        if length - (last_entry_id + 1) * HEADER_BYTES != length_bytes:
            raise Violation(f"closed by {who} with {length_bytes} bytes, but its entries have another length")

    def lacking(self) -> str | None:
        """An entry of a closed ledger that the metadata place on the gone bookie, or on too few; None: there is none."""
        assert self.end is not None
        for entry_id in range(self.end[0] + 1):
            if self.gone in self._where(entry_id) or not self._is_held(entry_id):
                return f"entry {entry_id}: {self._where(entry_id)}"
        return None

    def ledgers_of(self, bookie: str) -> list[int]:
        """Ledgers whose metadata names the bookie."""
        is_named = self.ledger_id >= 0 and any(bookie in segment.bookies for segment in self._metadata().segments)
        return [self.ledger_id] if is_named else []

    def count(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def answered_by(self, bookie: str) -> dict[int, bytes]:
        """The entries that a bookie has answered for: they stay there."""
        return {entry_id: entry.stored for entry_id, entry in self._entries.items() if bookie in entry.copies}

    def check_moves(self) -> None:
        """Checks, after a change of the metadata, that acknowledged entries are where the metadata say."""
        metadata = self._metadata()
        if metadata is self._known:
            return
        self._known = metadata
        for entry_id, entry in self._entries.items():
            if entry.is_acknowledged and not self._is_held(entry_id) and not self._may_be_cut(entry_id, metadata):
                where = self._where(entry_id)
                raise Violation(f"entry {entry_id} was acknowledged, {sorted(entry.copies)} have it, and it moved to {where}")

    def _may_be_cut(self, entry_id: int, metadata: LedgerMetadata) -> bool:
        """Whether it is after the end, and the ledger may end there: then it moved nowhere."""
        end = metadata.last_entry_id
        return metadata.state == LedgerState.CLOSED and entry_id > end and not self._is_promised(entry_id, end + 1)

    def _same_bytes(self, who: str, entry_id: int, stored: bytes) -> _Entry:
        entry = self._entries.setdefault(entry_id, _Entry())
        if entry.stored not in (b"", stored):
            raise Violation(f"two different entries {entry_id}: {who} has the other")
        entry.stored = stored
        return entry

    def _check_confirmed(self, entry_id: int, confirmed: int) -> None:
        if confirmed >= entry_id:
            raise Violation(f"entry {entry_id} says that {confirmed} is confirmed")
        while self._held_before <= confirmed:
            if not self._is_held(self._held_before):
                raise Violation(f"entry {entry_id} says that {confirmed} is confirmed, and {self._held_before} is not")
            self._held_before += 1

    def _check_end(self, entry_id: int) -> None:
        if self.end is not None and entry_id > self.end[0] and self._is_promised(entry_id, self.end[0] + 1):
            raise Violation(f"entry {entry_id} was acknowledged, and the ledger ends at {self.end[0]}")

    def _is_held(self, entry_id: int) -> bool:
        entry, named = self._entries.get(entry_id), self._where(entry_id)
        return entry is not None and sum(bookie in entry.copies for bookie in named) >= self._metadata().ack_quorum

    def _is_promised(self, entry_id: int, first_lost: int) -> bool:
        """Whether the ledger may not end before the first one lost, when both are after its end."""
        if not self.forgetful or not self._entries[entry_id].is_acknowledged:
            return self._entries[entry_id].is_acknowledged
        written = self._entries[first_lost].written
        sure = [bookie for bookie in self._where(first_lost) if bookie in written and bookie != self.forgetful]
        return len(sure) >= self._metadata().ack_quorum

    def _where(self, entry_id: int) -> list[str]:
        """The bookies that the metadata names for an entry."""
        metadata = self._metadata()
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        segment = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1]
        return [segment.bookies[index] for index in quorum.write_set(entry_id)]


HEADER_BYTES = 36
"""Header of an entry, CRC32C digest included: the ledgers' only digest here."""
