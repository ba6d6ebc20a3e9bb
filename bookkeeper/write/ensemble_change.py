"""Ensemble changes: the replacement of a bookie that failed, and its record in the ledger's metadata.

While a ledger is written, the new ensemble is in the metadata store before anything is sent to it, by compare-and-set on a
ledger that is still open (LedgerHandle.handleBookieFailure; BookKeeper issue 1591): a recovery that began fences this
writer instead. While a ledger is recovered, new ensembles are kept in memory and written with its end (LedgerRecoveryOp):
until then the old ones count. A bookie that failed is not taken again until an entry was confirmed, so that a change comes
to an end where all bookies fail.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError, LedgerFenced
from bookkeeper.placement.candidates import Candidates
from bookkeeper.read.reader import EntryReader
from ports.logs import line

_log = logging.getLogger(__name__)


def with_segment(metadata: LedgerMetadata, segment: Segment) -> LedgerMetadata:
    """The segment as the last one, in place of one that begins at the same entry: that one holds nothing."""
    before = metadata.segments if metadata.segments[-1].first_entry_id < segment.first_entry_id else metadata.segments[:-1]
    return replace(metadata, segments=(*before, segment))


class Replacements:
    """Chooses, and remembers who failed."""

    def __init__(self, candidates: Candidates, metadata: LedgerMetadata) -> None:
        self._candidates, self._metadata = candidates, metadata
        self._failed: dict[str, None] = {}
        """Since an entry was confirmed."""
        self._first_entry_id = -1

    def with_replacements(self, first_entry_id: int, ensemble: tuple[str, ...], failed: Sequence[int]) -> tuple[str, ...]:
        """See `replicated_adds.Ensembles`."""
        if first_entry_id > self._first_entry_id:
            self._first_entry_id = first_entry_id
            self._failed = {}
        self._failed |= {ensemble[index]: None for index in failed}
        chosen = list(ensemble)
        for index in failed:
            excluded = {*ensemble, *chosen, *self._failed}
            of_ledger = self._metadata.write_quorum, excluded, self._metadata.custom_metadata
            name = self._candidates.replacement(chosen, index, *of_ledger)
            if name is not None:
                chosen[index] = name
        return tuple(chosen)

    def on_failed(self, bookie: str) -> None:
        """See `replicated_adds.Ensembles`."""
        self._failed[bookie] = None
        self._candidates.on_error(bookie)


def _log_change(ledger_id: int, segment: Segment) -> None:
    bookies = ",".join(segment.bookies)
    _log.warning(line("ensemble changed", ledger=ledger_id, fromEntry=segment.first_entry_id, bookies=bookies))


class WriterEnsembles(Replacements):
    """Satisfies `replicated_adds.Ensembles` for the writer of an open ledger. Owns what the writer knows of its metadata."""

    def __init__(
        self,
        candidates: Candidates,
        registry: LedgerRegistry,
        ledger: RegisteredLedger,
        reader: EntryReader,
    ) -> None:
        super().__init__(candidates, ledger.metadata)
        self._registry, self._reader = registry, reader
        self.ledger = ledger

    async def store(self, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        """LedgerFenced when the ledger is not open any more; LedgerError, and the writer must stop: the stored ensemble
        is unknown."""
        segment = Segment(first_entry_id, ensemble)
        known = self.ledger.metadata.segments[-1]
        self.ledger = await self._registry.update(self.ledger, lambda metadata: self._changed(metadata, known, segment))
        _log_change(self.ledger.ledger_id, segment)
        self._metadata = self.ledger.metadata
        self._reader.follow(self._metadata)

    def _changed(self, metadata: LedgerMetadata, known: Segment, segment: Segment) -> LedgerMetadata | None:
        """Segments before the last are the repair's to change. The one to write may be there: the answer to its write was
        lost."""
        if metadata.state != LedgerState.OPEN:
            raise LedgerFenced(f"ledger {self.ledger.ledger_id} is {metadata.state.name}: another client recovers it")
        if metadata.segments[-1] == segment:
            return None
        if metadata.segments[-1] != known:
            raise LedgerError(f"ledger {self.ledger.ledger_id}: another client has changed its ensemble")
        return with_segment(metadata, segment)


class RecoveryEnsembles(Replacements):
    """Satisfies `replicated_adds.Ensembles` for a recovery; `segments` are those to be written with the end."""

    def __init__(self, candidates: Candidates, ledger_id: int, metadata: LedgerMetadata) -> None:
        super().__init__(candidates, metadata)
        self._ledger_id = ledger_id
        self.segments: list[Segment] = []

    async def store(self, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        segment = Segment(first_entry_id, ensemble)
        _log_change(self._ledger_id, segment)
        self._metadata = with_segment(self._metadata, segment)
        self.segments = [*(each for each in self.segments if each.first_entry_id < first_entry_id), segment]
