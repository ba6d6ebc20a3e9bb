"""Admission: which adds are taken, which wait for a memtable, which are refused. Every add goes through here, in order.

An add that is taken is in the memtable and on its way to the journal when `add` or `add_mix` returns. Bound: `WaitingAdds`.
"""

import asyncio
from collections.abc import Mapping

from bookie.adds.flusher import Flusher
from bookie.adds.memtable import cost_bytes
from bookie.adds.waiting_adds import WaitingAdd, WaitingAdds
from bookie.disk_space.health import Health
from bookie.journal.format_v1 import MasterKeySet
from bookie.journal.journal import Journal
from bookie.ledgers import Ledgers
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.kernels.mixes import ledgers_of
from wire.run import EntryMix, EntryRun
from wire.run_parts import can_be_stored

SMALL_RECORD_BYTES = 64
NO_LEDGERS: Mapping[int, bytes] = {}


class Admission:
    """Admission of one bookie's adds."""

    def __init__(self, ledgers: Ledgers, flusher: Flusher, journal: Journal, health: Health, waiting_bytes_max: int) -> None:
        self._ledgers = ledgers
        self._flusher = flusher
        self._journal = journal
        self._health = health
        self._waiting = WaitingAdds(waiting_bytes_max)

    @property
    def waiting(self) -> WaitingAdds:
        return self._waiting

    @property
    def writable_ledgers(self) -> Mapping[int, bytes]:
        """See `Bookie.writable_ledgers`."""
        return NO_LEDGERS if self._health.reasons else self._ledgers.writable

    def add(self, run: EntryRun, master_key: bytes, recovery: bool, future: "asyncio.Future[None]") -> None:
        """Done when it is durable, or refused."""
        if self._waiting:
            self._waiting.append(WaitingAdd(run.ledger_id, run, master_key, recovery, future))
        else:
            self._admit(run, master_key, recovery, future)

    def add_mix(self, mix: EntryMix, master_key: bytes, future: "asyncio.Future[None]") -> None:
        """See `Bookie.add_mix`."""
        if self._waiting:
            self._waiting.append(WaitingAdd(mix.ledger_id, mix, master_key, False, future))
        else:
            self._admit_mix(mix, master_key, future)

    def ensure(self, ledger_id: int, master_key: bytes) -> None:
        """The ledger is known from now on, with this key."""
        if self._ledgers.ensure(ledger_id, master_key):
            self._journal.append(MasterKeySet(ledger_id, master_key), SMALL_RECORD_BYTES, None)

    def admit_waiting(self) -> None:
        """After a flush: as many as find room now, in order."""
        for add in self._waiting.take_all():
            if self._waiting:
                self._waiting.append(add)
            elif add.run is None:
                self._journal.refuse(add.future, BookieError(BookieCode.ETOOMANYREQUESTS, add.ledger_id, "memtables are full"))
            elif add.future.cancelled():
                continue
            elif isinstance(add.run, EntryMix):
                self._readmit_mix(add.run, add.master_key, add.future)
            else:
                self._admit(add.run, add.master_key, add.recovery, add.future)

    def refuse_waiting(self) -> None:
        for add in self._waiting.take_all():
            self._journal.refuse(add.future, BookieError(BookieCode.EREADONLY, add.ledger_id, self._health.reason))

    def _admit(self, run: EntryRun, master_key: bytes, recovery: bool, future: "asyncio.Future[None]") -> None:
        state = self._ledgers.get(run.ledger_id)
        if self._health.reasons or state is None or state.master_key != master_key or (state.fenced and not recovery):
            refusal = self._refusal(run.ledger_id, master_key, recovery)
            if refusal is not None:
                self._journal.refuse(future, refusal)
                return
        assert can_be_stored(run), f"run {run.ledger_id}:{run.first_entry_id} is not what it says"
        size_bytes = cost_bytes(run)
        if not self._flusher.has_room(size_bytes):
            self._waiting.append(WaitingAdd(run.ledger_id, run, master_key, recovery, future))
            return
        if not (recovery or self._health.take(size_bytes)):
            self._refuse_for_room(run.ledger_id, future)
            return
        if state is None or state.master_key != master_key:
            self.ensure(run.ledger_id, master_key)
        self._flusher.active.insert(run, size_bytes)
        self._journal.append(run, size_bytes, future)

    def _admit_mix(self, mix: EntryMix, master_key: bytes, future: "asyncio.Future[None]") -> None:
        assert can_be_stored(mix), f"a mix of {mix.count} entries does not fill its buffer"
        size_bytes = cost_bytes(mix)
        if not self._flusher.has_room(size_bytes):
            self._waiting.append(WaitingAdd(mix.ledger_id, mix, master_key, False, future))
            return
        if not self._health.take(size_bytes):
            self._refuse_for_room(mix.ledger_id, future)
            return
        self._flusher.active.insert(mix, size_bytes)
        self._journal.append(mix, size_bytes, future)

    def _refuse_for_room(self, ledger_id: int, future: "asyncio.Future[None]") -> None:
        self._journal.refuse(future, BookieError(BookieCode.EREADONLY, ledger_id, self._health.reason))

    def _readmit_mix(self, mix: EntryMix, master_key: bytes, future: "asyncio.Future[None]") -> None:
        """Admit a mix that has waited: a ledger may be fenced by now, or all adds be refused."""
        writable = self.writable_ledgers
        if all(writable.get(ledger_id) == master_key for ledger_id in ledgers_of(mix)):
            self._admit_mix(mix, master_key, future)
        else:
            future.set_exception(NotAsOne())

    def _refusal(self, ledger_id: int, master_key: bytes, recovery: bool) -> BookieError | None:
        if self._health.reasons and not (recovery and self._health.takes_recovery):
            return BookieError(BookieCode.EREADONLY, ledger_id, self._health.reason)
        code = self._ledgers.refusal(ledger_id, master_key, recovery=recovery)
        return None if code is None else BookieError(code, ledger_id, "at add")
