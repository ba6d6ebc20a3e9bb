"""BookiePeers: what a bookie does as one of several: it gets back what it lost, and gives up what others have in its place.

Only here, since the storage node itself knows neither ledger metadata nor other bookies. Owns the clients of the others.
"""

import asyncio
import logging

from bookie.settings import BookieSettings
from bookie.striped_bookie import AnyBookie
from bookie.upkeep.over_replication import OverReplication
from bookkeeper.ledger_end.ledger_recovery import recover_ledger
from bookkeeper.ledger_metadata.codec import master_key
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.quarantine import Quarantine
from bookkeeper.placement.rack_placement import AnyPlace
from cli.bookie.integrity import DataIntegrity
from cli.bookie.places import LedgerPlaces
from cli.bookie.replicas import BookieReplicas
from metadata.store import MetadataStore
from ports.logs import line
from ports.network.tls import RenewedTls
from ports.rng import Rng

log = logging.getLogger("bookie.peers")


class BookiePeers:
    """Peers of the bookie called `bookie_id`. `open` once the bookie serves, `close` before it stops."""

    def __init__(
        self,
        bookie: AnyBookie,
        bookie_id: str,
        settings: BookieSettings,
        store: MetadataStore,
        registry: LedgerRegistry,
        rng: Rng,
        tls: RenewedTls | None = None,
    ) -> None:
        self._bookie, self._registry = bookie, registry
        self._bookies = NetworkBookies(store, tls=tls)
        self._candidates = Candidates(self._bookies, AnyPlace(rng), Quarantine(None, rng))
        self._replicas = BookieReplicas(bookie_id, registry, self._bookies)
        self._integrity = DataIntegrity(bookie, bookie_id, self._replicas, self._recover)
        places = LedgerPlaces(store, registry, bookie_id)
        self._surplus = OverReplication(bookie, places, settings.gc_overreplicated_ledger_wait_time / 1000)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """The scrub has replicas from now on, what is in limbo is looked for, what is too much goes. MetadataError."""
        await self._bookies.open()
        for stripe in self._bookie.stripes:
            stripe.scrub.replicas = self._replicas
        if self._bookie.limbo_ids():
            self._tasks.append(asyncio.create_task(self._integrity.run(), name="bookie data integrity"))
        self._tasks.append(asyncio.create_task(self._surplus.run(), name="bookie over-replicated ledgers"))
        for task in self._tasks:
            task.add_done_callback(_tell_failure)

    async def _recover(self, ledger: RegisteredLedger) -> RegisteredLedger:
        key = master_key(ledger.metadata.password)
        return await recover_ledger(ledger, self._registry, self._bookies, self._candidates, key)

    async def close(self) -> None:
        """Closing twice is fine."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._bookies.close()


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical(line("died, and does not run again before the next start", task=task.get_name()), exc_info=error)
