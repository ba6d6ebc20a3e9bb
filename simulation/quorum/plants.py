"""Planted bugs of the ledger protocol, for the quorum scenario: the classes of BookKeeper's incidents, and their neighbours.

As in `simulation.planted`, which lists them: what is replaced, and by what, made from the original.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bookie.adds.flusher import Flusher
from bookie.bookie import Bookie
from bookie.journal.format_v1 import LedgerFenced
from bookie.ledgers import Ledgers
from bookie.storage.storage import LedgerStorage
from bookkeeper.ledger_end.recovery import EntryMissing, Recovery, Rewritten
from bookkeeper.ledger_end.recovery_driver import RecoveryDriver
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.ledger.copier import Copier
from bookkeeper.write import writer
from bookkeeper.write.counted_adds import CountedAdds
from bookkeeper.write.ensemble_change import WriterEnsembles
from bookkeeper.write.parts import Part
from bookkeeper.write.quorum_tracker import QuorumTracker
from bookkeeper.write.replicated_adds import ReplicatedAdds
from bookkeeper.write.writer import BookieLedgerWriter
from metadata.store import ANY_VERSION
from wire.bookie.codes import BookieCode, BookieError


def _reads_do_not_fence(read_on: Any) -> Any:
    def broken(self: Recovery) -> Any:
        return [dataclasses.replace(read, fence_first=False) for read in read_on(self)]

    return broken


def _ensemble_before_metadata(store: Any) -> Any:
    async def later(self: WriterEnsembles, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        try:
            await store(self, first_entry_id, ensemble)
        except LedgerError:
            return  # the writer goes on: that is the bug

    async def broken(self: WriterEnsembles, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        self.late_store = asyncio.get_running_loop().create_task(later(self, first_entry_id, ensemble))  # type: ignore[attr-defined]

    return broken


def _damage_is_absence(read: Any) -> Any:
    async def broken(self: Bookie, ledger_id: int, *rest: Any) -> Any:
        try:
            return await read(self, ledger_id, *rest)
        except BookieError as error:
            if error.code == BookieCode.EIO:
                raise BookieError(BookieCode.ENOENTRY, ledger_id, str(error)) from error
            raise

    return broken


def _confirms_during_a_change(confirm: Any) -> Any:
    def broken(self: QuorumTracker) -> Any:
        leaving, self._leaving = self._leaving, {}
        try:
            return confirm(self)
        finally:
            self._leaving = leaving

    return broken


def _acks_stay_with_the_index(on_changed: Any) -> Any:
    def broken(self: QuorumTracker, replaced: Any, kept: Any = ()) -> Any:
        acked = {
            piece: {self.index_of(seat) for seat in replaced if found.acked >> seat & 1}
            for piece, found in self._pieces.items()
        }
        changed = on_changed(self, replaced, kept)
        for piece, indexes in acked.items():
            if piece in self._pieces:
                self._pieces[piece].acked |= sum(1 << changed.seats[index] for index in indexes)
        self._confirm()
        return changed

    return broken


def _mark_ahead(flush: Any) -> Any:
    async def broken(self: LedgerStorage, job: Any, states: Any, pause: Any) -> None:
        mark = max(job.mark, self.checkpoint.mark)
        await self._store_checkpoint(dataclasses.replace(self.checkpoint, mark=mark))
        await flush(self, job, states, pause)

    return broken


def _mark_of_the_end(perform: Any) -> Any:
    async def broken(self: Flusher, job: Any) -> None:
        await asyncio.sleep(0.002)
        await perform(self, dataclasses.replace(job, mark=self._journal.durable))

    return broken


def _fence_before_fsync(ensure_fenced: Any) -> Any:
    async def broken(self: Bookie, ledger_id: int, master_key: bytes) -> None:
        self.claim(ledger_id, master_key, "at fence")
        self._ledgers.fence(ledger_id)
        self._journal.append(LedgerFenced(ledger_id), 64, None)

    return broken


def _one_miss_is_enough(on_missing: Any) -> Any:
    def broken(self: Recovery, event: EntryMissing) -> Any:
        if event.entry_id == self._last + 1 and not self._missing:
            self._missing = dict.fromkeys(range(self._quorum.failures_max, 0, -1))
        return on_missing(self, event)

    return broken


def _last_writer_wins(update: Any) -> Any:
    async def broken(self: LedgerRegistry, ledger: RegisteredLedger, change: Any) -> RegisteredLedger:
        return await update(self, dataclasses.replace(ledger, version=ANY_VERSION), change)  # type: ignore[no-any-return]

    return broken


def _found_is_not_rewritten(rewrite: Any) -> Any:
    async def broken(self: RecoveryDriver, run: Any) -> Rewritten:
        return Rewritten()

    return broken


def _confirmed_ahead(seal_of: Any) -> Any:
    def broken(metadata: Any) -> Any:
        seal = seal_of(metadata)
        return lambda batch, ledger_id, first, confirmed, length: seal(batch, ledger_id, first, first - 1, length)

    return broken


def _knows_after_a_loss(enter_limbo: Any) -> Any:
    def broken(self: Ledgers, ledger_ids: Any) -> None:
        """Enters no limbo: the bookie answers "no such entry" for an entry that it lost."""

    return broken


def _named_before_copied(copy: Any) -> Any:
    async def broken(self: Copier, ledger: Any, fragment: Any, targets: Any) -> None:
        """Later, perhaps."""

    return broken


def one_ack_is_enough(confirm: Any) -> Any:
    def broken(self: QuorumTracker) -> Any:
        quorum, self._quorum = self._quorum, dataclasses.replace(self._quorum, ack_quorum=1)
        try:
            return confirm(self)
        finally:
            self._quorum = quorum

    return broken


def _id_given_twice(take_part: Any) -> Any:
    def broken(self: BookieLedgerWriter, part: Part) -> Any:
        is_taken = take_part(self, part)
        if is_taken and part.first_entry_id % 5 == 4:
            part.first_entry_id, part.last_entry_id = part.first_entry_id - 1, part.last_entry_id - 1
        return is_taken

    return broken


def _part_skipped(part_stored: Any) -> Any:
    def broken(self: CountedAdds, part: Part, seat: int) -> None:
        pending = self._pending
        if part.first_entry_id % 7 == 6 and pending is not None and len(pending) > 1 and pending[0] is part:
            self.last_confirmed = self._take_first().last_entry_id
        else:
            part_stored(self, part, seat)

    return broken


def _late_failure_unheard(on_answer: Any) -> Any:
    """The old defect: answers since the run are unknown to the tracker, which then decides where the new segment begins."""

    def broken(self: ReplicatedAdds, piece: int, seat: int, answer: "asyncio.Future[None]") -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._counts = False
        on_answer(self, piece, seat, answer)

    return broken


QUORUM_PLANTS: Mapping[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "reads-do-not-fence": (
        "recovery reads a bookie that it has not fenced (bookkeeper#2614)", Recovery, "_read_on", _reads_do_not_fence,
    ),
    "ensemble-before-metadata": (
        "a new ensemble is written to before the metadata names it (bookkeeper#1591)",
        WriterEnsembles, "store", _ensemble_before_metadata,
    ),
    "damage-is-absence": (
        "a bookie says 'no such entry' of one that it cannot read (bookkeeper#2908)", Bookie, "read", _damage_is_absence
    ),
    "confirms-during-a-change": (
        "adds complete while bookies are being replaced (bookkeeper#4194)", QuorumTracker, "_confirm", _confirms_during_a_change
    ),
    "acks-stay-with-the-index": (
        "the acks of a replaced bookie count for the new one (bookkeeper#3005, #4097)",
        QuorumTracker, "on_changed", _acks_stay_with_the_index,
    ),
    "mark-ahead": (
        "the checkpoint's mark is stored before the entries (bookkeeper#3329)", LedgerStorage, "flush", _mark_ahead
    ),
    "mark-of-the-end": (
        "the mark is taken when the flush ends, not when its table was taken (bookkeeper#3329)",
        Flusher, "_perform", _mark_of_the_end,
    ),
    "fence-before-fsync": (
        "a fence is answered before it is durable", Bookie, "ensure_fenced", _fence_before_fsync
    ),
    "one-miss-is-enough": (
        "one 'no such entry' ends the ledger (bookkeeper#1067, the other way)", Recovery, "_on_missing", _one_miss_is_enough
    ),
    "last-writer-wins": (
        "metadata is written whatever its version", LedgerRegistry, "update", _last_writer_wins
    ),
    "found-is-not-rewritten": (
        "recovery closes after what it found without writing it again", RecoveryDriver, "_rewrite", _found_is_not_rewritten
    ),
    "confirmed-ahead": (
        "an entry says that all before it are confirmed", writer, "_seal_of", _confirmed_ahead
    ),
    "knows-after-a-loss": (
        "a bookie that came back empty answers as if it knew (bookkeeper#2612)", Ledgers, "enter_limbo", _knows_after_a_loss
    ),
    "named-before-copied": (
        "a repair names a bookie that has not got the copies yet",
        Copier, "copy", _named_before_copied,
    ),
    "one-ack-is-enough": (
        "an entry is acknowledged when one bookie has it", QuorumTracker, "_confirm", one_ack_is_enough
    ),
    "id-given-twice": (
        "two parts of a mix have the same entry id", BookieLedgerWriter, "take_part", _id_given_twice
    ),
    "part-skipped": (
        "the pass over a mix's answer forgets a part, and confirms those after it", CountedAdds, "part_stored", _part_skipped
    ),
    "late-failure-takes-back": (
        "a run that fails at a late bookie takes back the parts that were counted since",
        ReplicatedAdds, "_on_answer", _late_failure_unheard,
    ),
}  # fmt: skip
