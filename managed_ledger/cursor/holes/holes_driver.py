"""StoredHoles: saves a cursor in Apache's format while its holes fit that, else as segments, and loads segments when needed.

Owns the choice between the two, said in the log, and the order: what changed is loaded, then planned and written, and counts
when the store says so. Decides nothing about segments (`cursor.pages`) nor about when to save (`cursor.throttle`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ports.logs import line
from ports.loop.side_by_side import unbroken
from wire.position import Position

from ...errors import ManagedLedgerError
from ...settings import ManagedLedgerSettings
from ..acknowledgements import Acknowledgements
from ..cursor_ledger import CopyFailed, SegmentRead
from ..cursor_store import CursorLedgerFailed, CursorStore
from ..state import RANGES_IN_ENTRY_MAX, CursorState
from .hole_stats import HoleStats
from .segment_cache import HoleCache
from .segment_save import SavePlan, Segment
from .segment_spans import END, FIRST
from .segments import HolePages

_log = logging.getLogger(__name__)

PLAIN_MAX = 100
"""Holes, and batches in parts, of a cursor whose entry is small and made at once."""


class StoredHoles:
    """Holes of one durable cursor. `state`: its state without holes. `moved` gets the old mark-delete when a load moves it."""

    def __init__(
        self,
        machine: Acknowledgements,
        store: CursorStore,
        cache: HoleCache,
        settings: ManagedLedgerSettings,
        state: Callable[[], CursorState],
    ) -> None:
        self.moved: Callable[[Position], None] = lambda _: None
        self._machine = machine
        self._store = store
        self._cache = cache
        self._state = state
        self._ranges_max = min(settings.managed_ledger_max_unacked_ranges_to_persist, RANGES_IN_ENTRY_MAX)
        self._ranges_in_node_max = settings.managed_ledger_max_unacked_ranges_to_persist_in_metadata_store
        self._turn = asyncio.Lock()
        self._loading: asyncio.Task[None] | None = None
        self._is_ended = False
        self._switches = self._returns = self._loads = self._saves = 0

    @property
    def fits_node(self) -> bool:
        holes = self._machine.holes
        return holes.pages is None and holes.range_count() <= self._ranges_in_node_max

    @property
    def _is_wanting(self) -> bool:
        """Whether something was acknowledged in a segment that is not resident."""
        pages = self._machine.holes.pages
        return pages is not None and bool(pages.wanted)

    def stats(self) -> HoleStats:
        holes, pages = self._machine.holes, self._machine.holes.pages
        return HoleStats(
            acknowledged_entries=holes.count,
            ranges=holes.range_count() if pages is None else pages.range_sum(),
            is_segmented=pages is not None,
            segments=0 if pages is None else len(pages),
            resident_segments=0 if pages is None else len(pages) - pages.absent,
            switches=self._switches,
            returns=self._returns,
            loads=self._loads,
            saves=self._saves,
            saved_entries=self._store.saved_entries,
            saved_bytes=self._store.saved_bytes,
            ledger_id=self._store.ledger_id,
            ledger_last_entry_id=self._store.ledger_last_entry_id,
            ledger_switched_ms=self._store.ledger_switched_ms,
        )

    def let_go_of_passed(self) -> None:
        """Mark-delete has moved: what it passed no longer counts in the cache."""
        pages = self._machine.holes.pages
        if pages is not None and pages.passed:
            self._cache.drop(pages, pages.passed)
            pages.passed.clear()

    def forget(self) -> None:
        """The machine is about to forget everything."""
        pages = self._machine.holes.pages
        if pages is not None:
            self._cache.forget(pages)

    def end(self) -> None:
        """The cursor is closed: nothing is loaded any more, and what is on its way does not come back into the cache."""
        self._is_ended = True
        self.forget()

    # loading

    async def load(self, ledger_id: int, first: int, last: int) -> None:
        """On return, until the next await, everything is known about these entries. ManagedLedgerError: it cannot be read.

        All of their segments stay, also those that were in memory: else each would push the others out, round and round.
        """
        while missing := self._machine.missing(ledger_id, first, last):
            await self._load(missing)
            asked_for = self._machine.segments(ledger_id, first, last)
            self._touch(asked_for)
            self._cache.shrink(keep=len(asked_for))

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether `load` has nothing to do. Their segments are in use, and stay longer."""
        if self._machine.missing(ledger_id, first, last):
            return False
        self._touch(self._machine.segments(ledger_id, first, last))
        return True

    def _touch(self, segments: Sequence[Segment]) -> None:
        pages = self._machine.holes.pages
        if pages is not None:
            self._cache.touched(pages, [each.start for each in segments])

    async def load_wanted(self) -> None:
        """Load the segments that mark-delete or an acknowledgement reached."""
        while (pages := self._machine.holes.pages) is not None and pages.wanted:
            found = [segment for start in pages.wanted if (segment := pages.segment(start)) is not None]
            await self._load(found)
            self._cache.shrink(keep=len(found))

    def load_wanted_soon(self) -> None:
        if self._loading is None and self._is_wanting:
            self._loading = asyncio.get_running_loop().create_task(self._load_in_background())

    async def _load_in_background(self) -> None:
        """Load in the background; a failed load is tried again with the next acknowledgement, and before the next write."""
        try:
            await self.load_wanted()
        except ManagedLedgerError as error:
            _log.warning(line("segment not loaded", cursor=self._store.path, error=error))
        finally:
            self._loading = None

    async def _load_for_save(self) -> None:
        """Load the segments that this save needs; they stay, whatever another cursor loads meanwhile."""
        while (pages := self._machine.holes.pages) is not None and (missing := pages.missing_for_save(self._ranges_max)):
            pages.is_held = True
            try:
                await self._load(missing)
            except BaseException:
                pages.is_held = False
                raise

    async def _load(self, segments: Sequence[Segment], *, lost_only: bool = False) -> None:
        """Read all of them, then take over those that are still as they were when they were read.

        `lost_only`: of these only what cannot be read, and may be gone without.
        """
        pages = self._machine.holes.pages
        assert pages is not None, "without pages nothing is missing"
        read = []
        for segment in segments:
            if self._is_absent(pages, segment):
                place = self._place(segment)
                read.append((segment, place, await self._store.read_segment(segment)))
        if self._is_ended:
            raise ManagedLedgerError(f"{self._store.path}: closed while its holes were loaded")
        mark_delete = self._machine.mark_delete
        try:
            for segment, place, found in read:
                # else it was passed by mark-delete or forgotten, and its entry went with the ledger
                if self._is_absent(pages, segment) and self._place(segment) == place and (found.errors or not lost_only):
                    self._take_over(pages, segment, found)
        finally:
            self.let_go_of_passed()
            if self._machine.mark_delete != mark_delete:
                self.moved(mark_delete)

    def _take_over(self, pages: HolePages, segment: Segment, found: SegmentRead) -> None:
        self._store.go_without(segment, found)
        self._machine.load(segment.start, found.stored, found.added, is_whole=not found.errors)
        self._cache.used(pages, segment.start, segment.weight)
        self._loads += 1

    async def _go_without_lost(self) -> None:
        """Load segments that a roll-over cannot copy, as far as they can be read; it then writes them from memory."""
        pages = self._machine.holes.pages
        for segment in [] if pages is None else pages.missing(FIRST, END):
            if self._machine.holes.pages is pages:
                await self._load([segment], lost_only=True)

    def _is_absent(self, pages: HolePages, segment: Segment) -> bool:
        """Whether it is still one of the cursor's segments, and on disk only."""
        return self._machine.holes.pages is pages and pages.segment(segment.start) is segment and not segment.is_resident

    def _place(self, segment: Segment) -> tuple[int, int, int]:
        """With the ledger: after a roll-over a segment often has the entry id that it had before, and other contents."""
        return self._store.ledger_id, segment.entry_id, segment.addition_id

    # saving

    def plain_entry(self) -> bytes | None:
        """The cursor as it is now, where that is one small entry in Apache's format; else it takes `save`."""
        machine = self._machine
        holes, batches = machine.holes.count, len(machine.batches)
        if machine.holes.pages is not None or holes > min(PLAIN_MAX, self._ranges_max) or batches > PLAIN_MAX:
            return None
        state = self._state()
        if state.properties:
            return None
        self._saves += 1
        return self._store.encoded(replace(state, holes=machine.holes.copy()) if holes else state)

    async def save(self, *, closing: bool = False) -> int:
        """Store the cursor as it is when the write begins; the machine's version of then."""
        return await unbroken(self._save(closing))

    async def _save(self, closing: bool) -> int:
        async with self._turn:
            self._saves += 1
            begin = is_searched = False
            while True:
                await self._load_for_save()
                if self._fits_apache():
                    return await self._save_whole(closing)
                try:
                    return await self._save_segments(begin, closing)
                except CursorLedgerFailed:
                    begin = True
                except CopyFailed:
                    if is_searched:
                        raise
                    begin = is_searched = True
                    await self._go_without_lost()

    def _fits_apache(self) -> bool:
        holes, pages = self._machine.holes, self._machine.holes.pages
        if holes.has_absent or (pages is not None and not pages.may_fit(self._ranges_max)):
            return False
        return holes.range_count() <= self._ranges_max

    async def _save_whole(self, closing: bool) -> int:
        """Save the whole state in Apache's format. A write that fails leaves the segments as they were."""
        holes = self._machine.holes
        pages, state = holes.pages, replace(self._state(), holes=holes.copy())
        if pages is not None:
            pages.is_held = True
        try:
            await (self._store.close(state) if closing else self._store.write(state))
        finally:
            if pages is not None:
                pages.is_held = False
        if pages is not None:
            holes.end_pages(pages)
            self._cache.forget(pages)
            self._returns += 1
            _log.info(line("holes fit Apache's format again", cursor=self._store.path, acknowledged=holes.count))
        return state.version

    async def _save_segments(self, begin: bool, closing: bool) -> int:
        holes = self._machine.holes
        if holes.pages is None:
            self._switches += 1
            reason = "more ranges than managedLedgerMaxUnackedRangesToPersist"
            _log.info(line("holes written as segments", cursor=self._store.path, acknowledged=holes.count, reason=reason))
        pages = holes.begin_pages()
        begin = begin or self._store.must_begin(len(pages))
        plan = pages.plan(self._state(), whole=begin)
        try:
            await self._store.write_segments(plan, lambda entry_ids: self._stored(pages, plan, entry_ids), begin=begin)
        except BaseException:
            if pages.is_held:
                pages.failed(plan)
            raise
        if closing:
            await self._store.close_ledger()
        return plan.state.version

    def _stored(self, pages: HolePages, plan: SavePlan, entry_ids: Sequence[int]) -> None:
        pages.stored(plan, entry_ids)
        if self._machine.holes.pages is pages:
            self.let_go_of_passed()
            for write in plan.writes:
                if write.segment.is_resident and pages.segment(write.segment.start) is write.segment:
                    self._cache.used(pages, write.segment.start, write.segment.weight)
            self._cache.shrink()
