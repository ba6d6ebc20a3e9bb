"""LoadDriver: a cluster broker's work on load, started and stopped together: reports, splits, and, if elected, moves.

Owns the tasks. `choosing` chooses brokers for lookups, from the same board.
"""

import asyncio
import logging
from collections.abc import Mapping

from metadata.store import MetadataError
from ports.logs import line

from ..ownership.bundles import Bundle
from .board import LoadBoard
from .leader import LoadLeader, Moves
from .loads import BrokerLoad
from .reporter import LoadReporter

log = logging.getLogger(__name__)


class LoadDriver:
    """`start` once the broker is registered, `stop` while it still is."""

    def __init__(self, own_id: str, board: LoadBoard, reporter: LoadReporter, leader: LoadLeader) -> None:
        self._own_id, self._board, self._reporter, self._leader = own_id, board, reporter, leader
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for work, name in ((self._reporter.run(), "load reporter"), (self._leader.run(), "load leader")):
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(_tell)
            self._tasks.append(task)

    async def stop(self) -> None:
        """Nothing is moved or split by this broker any more, and its report is gone. Stopping twice is fine."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            await self._leader.close()
            try:
                await self._board.remove(self._own_id)
            except MetadataError as error:
                log.warning(line("the load report of a stopped broker is not removed; others ignore it", reason=error))
            self._board.close()

    def leader(self) -> Mapping[str, str]:
        """Apache's LeaderBroker; empty when none is known."""
        return self._leader.leader()

    async def apaches_leader(self) -> str:
        """The web address of the leader if that is a broker of Apache's, which keeps wishes in its memory and therefore has
        to be notified; else empty. MetadataError.
        """
        leader = self.leader()
        broker = leader.get("brokerId", "")
        report = (await self._board.reports([broker])).get(broker) if broker else None
        return leader.get("serviceUrl", "") if report is not None and report.is_apaches else ""

    async def hand_over(self, bundle: Bundle) -> None:
        """The bundle is released: its history is stored for the next owner. Never fails."""
        await self._reporter.hand_over(bundle)

    def reported(self) -> BrokerLoad:
        return self._reporter.reported

    @property
    def moves(self) -> Moves:
        """Moves that this broker made as the leader."""
        return self._leader.moves

    @property
    def usages(self) -> list[float]:
        """See `LoadLeader`; empty where another is the leader."""
        return self._leader.usages


class LoadBalancing:
    """Load driver of a broker, while it runs. A standalone has none, nor a broker with loadBalancerEnabled=false."""

    def __init__(self) -> None:
        self.driver: LoadDriver | None = None

    def start(self, driver: LoadDriver) -> None:
        self.driver = driver
        driver.start()

    async def hand_over(self, bundle: Bundle) -> None:
        """A bundle is given up: the driver stores its history, also after it has stopped. Never fails."""
        if self.driver is not None:
            await self.driver.hand_over(bundle)

    async def stop(self) -> None:
        """Stops the driver, which stays for questions. Stopping twice is fine."""
        if self.driver is not None:
            await self.driver.stop()


def _tell(task: "asyncio.Task[None]") -> None:
    """A driver that dies of a bug must not do so in silence."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical(line("load is not looked after any more", task=task.get_name()), exc_info=error)
