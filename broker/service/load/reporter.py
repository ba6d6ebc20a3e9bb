"""LoadReporter: looks at this broker's load every few seconds, and reports it when it has changed. Owns the histories of its
bundles, which go on from those of the former owner (Apache: /loadbalance/bundle-data). A look costs a few microseconds for each
topic, in turns.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from metadata.store import MetadataError
from ports.clock import Clock
from ports.logs import line
from ports.loop.taking_apart import items_taken_apart
from ports.metrics.machine_usage import MachineUsage

from ...topic.contract import Topic
from ..ownership.bundles import Bundle
from ..topic_name import TopicName
from .board import LoadBoard, Report
from .loads import BrokerLoad, BundleHistory, BundleStats, Usage
from .settings import LoadSettings

HISTORY_SECONDS = 60.0
"""Between two samples of a history: as often as topics sample their rates."""
HAND_OVER_SECONDS_MAX = 2.0
"""Longest time that a released bundle waits for its history to be written."""
_SLICE = 500
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedTopics:
    """Topics that are served here by name, and the bundle of each as far as known."""

    topics: Mapping[str, Topic]
    bundle_of: Callable[[TopicName], Bundle | None]

    async def load(self) -> dict[Bundle, BundleStats]:
        """Load of each bundle, in slices."""
        found: dict[Bundle, BundleStats] = {}
        for number, (name, topic) in enumerate(items_taken_apart(self.topics)):
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            bundle = self.bundle_of(TopicName.parse(name))
            if bundle is not None:
                now = topic.traffic()
                stats = BundleStats(
                    now.msg_rate_in,
                    now.msg_rate_out,
                    now.msg_throughput_in,
                    now.msg_throughput_out,
                    1,
                    now.consumers,
                    now.producers,
                )
                found[bundle] = found.get(bundle, BundleStats()).plus(stats)
        return found


class LoadReporter:
    """`run` until cancelled. `on_look` is called at each look at the bundles, before the report."""

    def __init__(
        self,
        own_id: str,
        board: LoadBoard,
        settings: LoadSettings,
        clock: Clock,
        usage: MachineUsage,
        served: ServedTopics,
        on_look: Callable[[Mapping[Bundle, BundleStats]], Awaitable[None]],
    ) -> None:
        self._own_id, self._board, self._settings, self._clock = own_id, board, settings, clock
        self._usage, self._served, self._on_look = usage, served, on_look
        self._histories: dict[str, BundleHistory] = {}
        self._loop = asyncio.get_running_loop()
        self._sampled_at = self._loop.time()
        self._kept_at = self._sampled_at
        self._reported_at = 0.0
        self._reported: BrokerLoad | None = None

    @property
    def reported(self) -> BrokerLoad:
        """Load that was reported last."""
        return self._reported or BrokerLoad()

    async def run(self) -> None:
        """Runs until cancelled; a failure of the metadata is waited out."""
        while True:
            try:
                await self.look()
            except MetadataError as error:
                log.warning(line("load not reported", reason=error))
            await asyncio.sleep(self._settings.load_balancer_report_update_min_interval_millis / 1000)

    async def look(self) -> None:
        """Once. MetadataError."""
        stats = await self._served.load()
        await self._on_look(stats)
        used = self._usage.sample()
        usage = Usage(used.cpu, used.memory, used.bandwidth_in, used.bandwidth_out)
        load = BrokerLoad(usage, {str(bundle): each for bundle, each in stats.items()}, self._clock.now_ms())
        await self._take_up(load)
        self._sample(load)
        await self._keep()
        if self._is_due(load):
            await self._board.put(self._own_id, Report(load, self._histories))
            self._reported, self._reported_at = load, self._loop.time()

    async def hand_over(self, bundle: Bundle) -> None:
        """The bundle is released: its history is stored for the next owner. Never fails."""
        history = self._histories.pop(str(bundle), None)
        if history is None or not history.long.samples:
            return
        try:
            async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
                await self._board.keep_history(str(bundle), history)
        except (TimeoutError, MetadataError) as error:
            log.warning(
                line("load of a bundle not stored for its next owner", bundle=bundle, reason=error or "no answer in time")
            )

    async def _take_up(self, load: BrokerLoad) -> None:
        """Reads the histories of bundles that are new here. An unreadable history counts as none."""
        for name in [name for name in load.bundles if name not in self._histories]:
            try:
                self._histories[name] = await self._board.history(name) or BundleHistory()
            except MetadataError as error:
                log.warning(line("load of a bundle cannot be read: it starts at nothing", bundle=name, reason=error))
                self._histories[name] = BundleHistory()

    async def _keep(self) -> None:
        """Now and then, for the case that this broker is killed."""
        if self._loop.time() - self._kept_at < 60 * self._settings.load_balancer_resource_quota_update_interval_minutes:
            return
        self._kept_at = self._loop.time()
        for name, history in list(self._histories.items()):
            await self._board.keep_history(name, history)

    def _sample(self, load: BrokerLoad) -> None:
        now = self._loop.time()
        is_time = now - self._sampled_at >= HISTORY_SECONDS
        self._histories = {
            name: history.after(load.bundles[name]) if is_time or not history.long.samples else history
            for name, history in self._histories.items()
            if name in load.bundles
        }
        if is_time:
            self._sampled_at = now

    def _is_due(self, load: BrokerLoad) -> bool:
        settings = self._settings
        if self._reported is None:
            return True
        change = 100 * self._reported.changed_share(load)
        age = self._loop.time() - self._reported_at
        return (
            change >= settings.load_balancer_report_update_threshold_percentage
            or self._reported.bundles.keys() != load.bundles.keys()
            or age >= 60 * settings.load_balancer_report_update_max_interval_minutes
        )
