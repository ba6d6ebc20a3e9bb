"""Entries of a run that a dispatcher holds back because their time has not come, by the policies in force.

Owns the policies and when to be woken; `delays` keeps the entries. Entries are judged by their metadata whenever they are read,
also when they come back: so a clock that was set back holds them again, and nothing else has to be exact.
"""

from pyroaring import BitMap

from wire.kernels.delays import later_than
from wire.position import Position

from ..contract import DelaysChanged, Effect, EntriesRead, IndexFound, WakeAt
from ..delays.delays import Delays
from ..entry_sets import EntrySet

_PARTS_OF_TICK = 10
"""Entries are kept by a tenth of delayedDeliveryTickTimeMillis: so late they are, and a tick stays for the rest of the way."""


class HeldBack:
    """Held-back entries of one subscription."""

    def __init__(self) -> None:
        self.delays = Delays(1)
        self.is_enabled = False
        self._ahead_ms = 0
        self._told_ms: int | None = None

    def __bool__(self) -> bool:
        return len(self.delays) > 0

    def change(self, event: DelaysChanged) -> EntrySet:
        """Changes the policy; returns the entries that wait no longer when delays are turned off."""
        self.is_enabled = event.is_enabled
        self._ahead_ms = 0 if event.is_strict else event.tick_ms
        self.delays.set_tick(max(1, event.tick_ms // _PARTS_OF_TICK))
        released = EntrySet()
        if not event.is_enabled:
            released.update(self.delays.waiting())
            self.delays.clear()
        return released

    def of(self, answer: EntriesRead) -> BitMap | None:
        """The entries of the run whose time has not come; None: there are none."""
        if answer.deliver_times is None or not self.is_enabled:
            return None
        indexes = later_than(answer.deliver_times, answer.wall_ms + self._ahead_ms)
        return BitMap(indexes).shift(answer.run.first_entry_id) if indexes else None

    def keep(self, answer: EntriesRead, entry_ids: BitMap) -> None:
        """Holds these entries back until their time comes."""
        assert answer.deliver_times is not None, "held back without a time"
        first = answer.run.first_entry_id
        indexes = entry_ids.shift(-first).to_array()
        self.delays.add(answer.run.ledger_id, first, answer.deliver_times, indexes, answer.wall_ms)

    def take_known(self, event: IndexFound, ledger_id: int, gone: BitMap) -> None:
        """Takes in a ledger's stored entries, without those that are gone; does nothing where delays are off."""
        if self.is_enabled and not self.delays.is_full:
            known, entry_ids, times = event.found[ledger_id]
            self.delays.add_known(ledger_id, known, entry_ids, times, event.acknowledged[ledger_id] | gone, event.wall_ms)

    def take_due(self, wall_ms: int) -> EntrySet:
        self._told_ms = None
        return self.delays.take_due(wall_ms)

    def ask_for_time(self, effects: list[Effect]) -> None:
        wanted = self.delays.next_ms() if self else None
        if wanted is not None and wanted != self._told_ms:
            effects.append(WakeAt(wanted))
            self._told_ms = wanted

    def remove(self, ledger_id: int, entry_ids: BitMap) -> None:
        if self:
            self.delays.remove(ledger_id, entry_ids)

    def remove_between(self, start: Position, end: Position) -> None:
        if self:
            self.delays.remove_between(start, end)
