"""Repairer: an auditor and a replication worker as a program on a host of its own, which may die and come back."""

from bookkeeper.ledger_metadata.paths import AVAILABLE
from bookkeeper.repair.auto_recovery import AutoRecovery
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.settings import RepairSettings
from metadata.memory import MemoryStore, OneSession
from metadata.store import ANY_VERSION, Delete
from simulation.quorum.client import TIMEOUT_SECONDS, World
from simulation.world.clock import SimClock
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream

REPAIRER = "repairer"
SETTINGS = RepairSettings(
    open_ledger_rereplication_grace_period=200,
    lock_release_of_failed_ledger_grace_period=1000,
    rw_rereplicate_backoff_ms=200,
    rereplication_entry_batch_size=2,
)
SESSION_SECONDS = 0.5
"""After its death its locks and its vote are others' to take."""


class Repairer:
    """`process.start` it; `die` ends it, and starts it again when its session is over."""

    def __init__(self, world: World, network: SimNetwork, seed: int) -> None:
        self.process = SimProcess(world.loop, network, REPAIRER, None, self._main)
        self._world, self._seed = world, seed
        self._clock = SimClock(world.loop)
        self.lives = 0
        self.failed = 0
        """Repairs that could not be done, of all lives that have ended."""
        self._recovery: AutoRecovery | None = None
        self._store: MemoryStore

    @property
    def failures(self) -> int:
        """Repairs that could not be done."""
        if self._recovery is None:
            return 0
        return self.failed + self._recovery.counters.replication_worker_num_defer_ledger_lock_release_of_failed_ledger

    def die(self) -> None:
        if self.process.alive:
            self.process.kill()
            self._world.loop.hardware_later(SESSION_SECONDS, self._come_back, self._store.session)

    def _come_back(self, session: int) -> None:
        self._world.shared.end_session(session, self._clock.now_ms())
        self.process.start()

    def unregister(self, bookie: str) -> None:
        """Unregisters a bookie, like the end of its session."""
        tree = self._world.shared
        applied = tree.tree.apply([Delete(f"{AVAILABLE}/{bookie}", ANY_VERSION)], 0, self._clock.now_ms())
        tree.watches.tell(applied.notifications())

    async def _main(self) -> None:
        self.failed = self.failures
        self.lives += 1
        rng = stream(self._seed, f"life {self.lives} of {REPAIRER}")
        self._store = MemoryStore(self._clock, self._world.shared, alone=False, answer_delay=lambda: rng.expovariate(1000))
        client = RepairClient(self._store, SETTINGS, self._clock, rng, REPAIRER, timeout_seconds=TIMEOUT_SECONDS)
        recovery = self._recovery = AutoRecovery(client, OneSession())
        await recovery.start()
        await recovery.until_it_failed()
