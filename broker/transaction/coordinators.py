"""The coordinators of this broker: those whose partition of the assign topic it owns, each loaded once.

Owns which are loaded, and that each is closed when its partition is given up. Apache (TransactionMetadataStoreService) loads
one when a client connects to it; here the owner also does so by itself, so that after a crash transactions end though no
client comes back. Bounds: LOADS_MAX.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from managed_ledger.contract import ManagedLedgers
from metadata.store import MetadataError
from ports.clock import Clock
from ports.logs import line

from ..errors import BrokerError, ServerError
from ..service.catalogue.catalogue import Catalogue
from ..service.errors import TopicConflict, TopicElsewhere
from ..service.lookup import Lookup
from ..service.topic_name import NamespaceName, TopicName
from .contract import Participants
from .coordinator_driver import Coordinator
from .ending_driver import Endings
from .log_driver import log_topic
from .meters import EndingMeters
from .settings import TransactionSettings

log = logging.getLogger(__name__)

SYSTEM = NamespaceName("pulsar", "system")
ASSIGN = TopicName.parse("persistent://pulsar/system/transaction_coordinator_assign")
"""The owners of its partitions are the coordinators; the topic is never opened."""
COORDINATORS = 16
"""Number of coordinators that Apache's `initialize-transaction-coordinator-metadata` makes."""
LOADS_MAX = 4
LOOK_SECONDS = 30.0
"""Time between two looks for coordinators that have become the broker's own without a client."""


async def initialise_coordinators(catalogue: Catalogue, count: int = COORDINATORS) -> None:
    """Creates the coordinators where there are none, so that clients find them. Somebody else may do it at the same time."""
    await catalogue.namespaces.require(SYSTEM)
    if (await catalogue.partitioned_topics.get(ASSIGN)).partitions:
        return
    try:
        await catalogue.partitioned_topics.create(ASSIGN, count, {})
    except TopicConflict:
        log.debug(line("another broker made the transaction coordinators first"))


class Coordinators:
    """`close` before the service. Requests to a coordinator that is not here: TRANSACTION_COORDINATOR_NOT_FOUND."""

    def __init__(
        self,
        settings: TransactionSettings,
        ledgers: ManagedLedgers,
        catalogue: Catalogue,
        lookup: Lookup,
        participants: Participants,
        clock: Clock,
    ) -> None:
        self._settings, self._ledgers, self._clock = settings, ledgers, clock
        self._catalogue, self._lookup = catalogue, lookup
        seconds = settings.transaction_buffer_client_operation_timeout_in_mills / 1000
        self._endings = Endings(participants, settings.transaction_buffer_client_max_concurrent_requests, seconds)
        self._loaded: dict[int, Coordinator] = {}
        self._busy: dict[int, asyncio.Task[None]] = {}
        """Tasks that load or close a coordinator, by its number."""
        self._turns = asyncio.Semaphore(LOADS_MAX)
        self._looking: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def all(self) -> Mapping[int, Coordinator]:
        """Loaded coordinators. Read only."""
        return self._loaded

    @property
    def ending_meters(self) -> EndingMeters:
        """Meters of the requests of all coordinators to topics and subscriptions."""
        return self._endings.meters

    async def start(self) -> None:
        """Once the service has started."""
        self._looking = asyncio.create_task(self._look(), name="transaction coordinators")

    async def close(self) -> None:
        """Closing twice is fine."""
        self._is_closing = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
            self._looking = None
        await self.close_covered(lambda topic: True)

    # ---- Requests

    def get(self, coordinator_id: int) -> Coordinator:
        """TRANSACTION_COORDINATOR_NOT_FOUND."""
        found = self._loaded.get(coordinator_id)
        if found is None or found.has_ended or coordinator_id in self._busy:
            text = f"Transaction coordinator with id {coordinator_id} not found!"
            raise BrokerError(ServerError.TRANSACTION_COORDINATOR_NOT_FOUND, text)
        return found

    async def connect(self, coordinator_id: int) -> Coordinator:
        """Load it unless it is. TopicElsewhere; TRANSACTION_COORDINATOR_NOT_FOUND when there is none of this number."""
        topic = await self._partition(coordinator_id)
        while True:
            if not self._lookup.owners.serves(topic):
                raise TopicElsewhere(str(topic), self._lookup.advertised.http_url)
            if self._is_closing:
                raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is stopping")
            found = self._loaded.get(coordinator_id)
            busy = self._busy.get(coordinator_id)
            if busy is not None:
                await asyncio.wait([busy])
            elif found is None:
                await self._begin(coordinator_id, self._load(coordinator_id, topic))
            elif found.has_ended:
                await self._begin(coordinator_id, self._close(coordinator_id))
            else:
                return found

    async def _partition(self, coordinator_id: int) -> TopicName:
        if coordinator_id >= (await self._catalogue.partitioned_topics.get(ASSIGN)).partitions:
            text = f"Transaction coordinator with id {coordinator_id} not found!"
            raise BrokerError(ServerError.TRANSACTION_COORDINATOR_NOT_FOUND, text)
        return ASSIGN.partition(coordinator_id)

    # ---- Loading and closing

    async def _begin(self, coordinator_id: int, work: Coroutine[Any, Any, None]) -> None:
        """Starts a task that outlives its waiting callers."""
        task = self._busy[coordinator_id] = asyncio.create_task(work, name=f"transaction coordinator {coordinator_id}")
        task.add_done_callback(lambda done: self._busy_done(coordinator_id, done))
        await asyncio.shield(task)

    def _busy_done(self, coordinator_id: int, done: "asyncio.Task[None]") -> None:
        del self._busy[coordinator_id]
        if not done.cancelled():
            done.exception()  # waiting callers get it

    async def _load(self, coordinator_id: int, topic: TopicName) -> None:
        async with self._turns:
            active_max = self._settings.max_active_transactions_per_coordinator
            found = await Coordinator.load(coordinator_id, self._ledgers, self._endings, self._clock, active_max)
            if self._is_closing or not self._lookup.owners.serves(topic):  # given up while it was loaded
                await found.close()
                raise TopicElsewhere(str(topic), self._lookup.advertised.http_url)
            self._loaded[coordinator_id] = found

    async def _close(self, coordinator_id: int) -> None:
        try:
            await self._loaded[coordinator_id].close()
        finally:
            del self._loaded[coordinator_id]

    async def close_covered(self, covers: Callable[[TopicName], bool]) -> None:
        """Closes the coordinators of a bundle: when it returns others may load them."""
        numbers = [each for each in {**self._loaded, **self._busy} if covers(ASSIGN.partition(each))]
        await asyncio.gather(*(self._close_one(each) for each in numbers))

    async def _close_one(self, coordinator_id: int) -> None:
        while (busy := self._busy.get(coordinator_id)) is not None:
            await asyncio.wait([busy])
        if coordinator_id in self._loaded:
            await self._begin(coordinator_id, self._close(coordinator_id))

    async def _look(self) -> None:
        while True:
            try:
                await self._load_own()
            except (BrokerError, MetadataError) as error:
                log.warning(line("transaction coordinators cannot be looked for now", reason=error))
            await asyncio.sleep(LOOK_SECONDS)

    async def _load_own(self) -> None:
        """Somebody takes each, for being asked; this broker loads its own, as far as they have ever been used."""
        for number in range((await self._catalogue.partitioned_topics.get(ASSIGN)).partitions):
            topic = ASSIGN.partition(number)
            found = self._loaded.get(number)
            if (found is not None and not found.has_ended) or not await self._ledgers.exists(
                log_topic(number).managed_ledger_name
            ):
                continue
            try:
                if (await self._lookup.find(topic)).address == self._lookup.advertised:
                    await self.connect(number)
            except BrokerError as error:
                log.warning(line("a transaction coordinator cannot be loaded now", coordinator=number, reason=error))
