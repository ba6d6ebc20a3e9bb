"""Auditor: marks ledgers that lack copies, while this process is the elected one.

The driver of `LostBookies`: follows the registered bookies, and marks the ledgers of lost ones (`Marking`). It also checks all
copies each auditorPeriodicCheckInterval, counted in the cluster's metadata from the last check by any auditor.
Nothing is marked while autorecovery is disabled; work that was due then is done afterwards.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bookkeeper.ledger_metadata.paths import AVAILABLE
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.auditor.lost_bookies import LostBookies
from bookkeeper.repair.auditor.marking import Marking
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.registered import registered_bookies
from bookkeeper.repair.underreplication.tree import DISABLED, LOST_BOOKIE_RECOVERY_DELAY
from metadata.store import MetadataError, Notification
from ports.logs import line

RETRY_SECONDS = 5.0
CHECK_SECONDS_MIN = 1.0
DISABLED_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Auditor:
    """`run` until cancelled: from the election on, as long as this process is the elected one."""

    def __init__(self, client: RepairClient, counters: RepairCounters) -> None:
        self._client, self._counters = client, counters
        self._marking = Marking(client, counters)
        self._lost = LostBookies(client.settings.lost_bookie_recovery_delay)
        self._changed = asyncio.Event()
        self._delay_was_set = False

    async def run(self) -> None:
        """Until cancelled. A failure of the metadata is waited out."""
        store, settings = self._client.store, self._client.settings
        ends = [
            store.watch(AVAILABLE, self._on_change),
            store.watch(DISABLED, self._on_change),
            store.watch(LOST_BOOKIE_RECOVERY_DELAY, self._on_delay),
        ]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_bookies())
                group.create_task(self._now_and_then(settings.auditor_periodic_check_interval, self._check_copies))
                interval = settings.auditor_periodic_placement_policy_check_interval
                group.create_task(self._now_and_then(interval, self._check_placement))
        finally:
            for end in ends:
                end()

    def _on_change(self, _: Notification) -> None:
        self._changed.set()

    def _on_delay(self, _: Notification) -> None:
        self._delay_was_set = True
        self._changed.set()

    # Lost bookies

    async def _follow_bookies(self) -> None:
        await self._until_done(self._begin)
        loop = asyncio.get_running_loop()
        interval = self._client.settings.auditor_periodic_bookie_check_interval
        next_check = loop.time() + interval
        while True:
            await self._until_done(self._look)
            if interval and loop.time() >= next_check:
                next_check = loop.time() + interval
                self._lost.on_interval()
                continue
            await self._wait(self._lost.due_at, next_check if interval else None)

    async def _begin(self) -> None:
        marks = self._client.marks
        await marks.initialise_lost_bookie_recovery_delay(self._client.settings.lost_bookie_recovery_delay)
        self._delay_was_set = False
        self._lost.delay_seconds = await marks.lost_bookie_recovery_delay() or 0
        self._lost.on_named(await self._marking.named_bookies())

    async def _look(self) -> None:
        """Look at the bookies that are there, and mark when that is due."""
        self._changed.clear()
        loop, lost = asyncio.get_running_loop(), self._lost
        if self._delay_was_set:
            self._delay_was_set = False
            try:
                lost.on_delay(await self._client.marks.lost_bookie_recovery_delay() or 0, loop.time())
            except (MetadataError, LedgerError):
                self._delay_was_set = True
                raise
        present = (await registered_bookies(self._client.store)).all
        lost.on_present(present, loop.time())
        self._counters.auditor_num_bookie_audits_delayed = lost.delayed_count
        self._counters.auditor_num_delayed_bookie_audits_delayes_cancelled = lost.cancelled_count
        if not lost.is_due(loop.time()):
            return
        if await self._may_mark(present):
            marked = await self._marking.lost_bookies(present)
            _log.info(line("ledgers audited", bookies=len(present), ledgersMarked=marked))
            lost.on_audited(present)

    async def _may_mark(self, present: frozenset[str]) -> bool:
        """Whether ledgers may be marked: not without any bookie, since then the metadata is more likely wrong."""
        if not present:
            _log.error(line("no bookie is registered: no ledger is marked as under-replicated"))
        return bool(present) and await self._client.marks.is_enabled()

    async def _wait(self, *times: float | None) -> None:
        """Wait for a change or for one of these times; work that is due but not allowed waits for a change alone."""
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min((at for at in times if at is not None and at > now), default=None)):
                await self._changed.wait()
        except TimeoutError:
            return  # which is what it waits for

    # Now and then

    async def _check_copies(self, interval: float) -> float:
        """Seconds to the next check."""
        marks = self._client.marks
        checked_ms = await marks.checked_all_at_ms()
        now_ms = self._client.clock.now_ms()
        if checked_ms is not None and (left := checked_ms / 1000 + interval - now_ms / 1000) > 0:
            return left
        if await marks.is_enabled():
            _log.info(line("checking the copies of all ledgers"))
            marked = await self._marking.all_copies()
            await marks.set_checked_all_at_ms(now_ms)
            _log.info(line("checked the copies of all ledgers", ledgersMarked=marked))
            return interval
        return min(interval, DISABLED_SECONDS)

    async def _check_placement(self, interval: float) -> float:
        found = await self._marking.placement((await registered_bookies(self._client.store)).writable)
        if found:
            _log.warning(line("copies of ledgers are closer together than the placement policy allows", count=found))
        return interval

    async def _now_and_then(self, interval: float, check: Callable[[float], Awaitable[float]]) -> None:
        while interval:
            seconds = RETRY_SECONDS
            try:
                seconds = await check(interval)
            except (MetadataError, LedgerError) as error:
                _log.warning(line("auditor tries again", reason=error, seconds=seconds))
            await asyncio.sleep(max(CHECK_SECONDS_MIN, seconds))

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await work()
            except (MetadataError, LedgerError) as error:
                _log.warning(line("auditor tries again", reason=error, seconds=RETRY_SECONDS))
                await asyncio.sleep(RETRY_SECONDS)
