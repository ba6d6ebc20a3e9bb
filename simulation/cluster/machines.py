"""Brokers and bookies of a simulated cluster: the compositions of `cli.broker` and `cli.bookie` on simulated ports.

A machine is a host with its deaths; it outlives its processes, as its disk and its name do. The cluster's truth is told the
logs that brokers really open. A process that cannot start, or has to end, ends; `tend` starts it again.
"""

import asyncio
import dataclasses
import functools
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from bookie.errors import BookieStartError
from bookie.settings import BookieSettings
from bookkeeper.ledgers import LedgerError
from broker.service.load.settings import LoadSettings
from cli.bookie.server import BookieFailed, BookieServer
from cli.broker.server import BrokerFailed, BrokerServer
from cli.configuration.loading import Configuration, known_keys
from managed_ledger.contract import ManagedLedger
from managed_ledger.factory import ManagedLedgerFactory
from metadata.store import MetadataError
from metadata.zookeeper.store import ZooKeeperStore
from ports.metrics.machine_usage import MachineUse
from ports.settings import build_settings, fold, known_key
from simulation.checks.history import Violation
from simulation.cluster.session import SimSession
from simulation.cluster.zookeeper import SimZooKeeper
from simulation.disks.disk import SimDisk
from simulation.disks.small_disk import SmallDisk
from simulation.quorum.plan import JOURNAL, LEDGERS, KilobytesForMegabytes
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream

S = TypeVar("S")
BROKER_PORT, WEB_PORT, BOOKIE_PORT = 6650, 8080, 3181
SESSION_SECONDS = 2.0
"""Session of brokers and bookies: after as long a silence others may take what they own."""
METADATA_SECONDS_MAX = 6.0
"""Longest time of an operation on the metadata."""
DISK_BYTES = 4 << 30
"""Enough for the settings to stay as they are (`bookie.disk_space.disk_watch`), and others can fill it."""
ASKED = "asked by an operator"
LET_GO_SECONDS = 25.0
"""Time in which a stopping process ends all that it had begun: requests outlive their connections, lookups wait for 20 s."""
OnOpened = Callable[[str, float, ManagedLedger], Callable[[], None]]
"""Told of a life, when it began to open, and what it has opened; what it returns is called at each confirmed append."""


@dataclasses.dataclass(frozen=True)
class SimConfiguration(Configuration):
    """A bookie's journals roll over within a run, and a start reads them in no time: less than a key can say."""

    def settings(self, cls: type[S]) -> S:
        found: S = _settings(cls, tuple(self.values.items()))  # type: ignore[arg-type]  # classes are hashable
        return found


class SecondsForMinutes(int):
    """A setting in minutes that means seconds: a leader that moves bundles within a run."""

    def __rmul__(self, sixty: int) -> int:
        return int(self) * sixty // 60


_IN_MINUTES = (
    "load_balancer_report_update_max_interval_minutes",
    "load_balancer_shedding_interval_minutes",
    "load_balancer_shedding_grace_period_minutes",
    "load_balancer_resource_quota_update_interval_minutes",
)


@functools.cache
def _settings(cls: type[Any], values: tuple[tuple[str, str], ...]) -> Any:
    """Once, and not for each life of each machine: a tenth of a run's time."""
    found = build_settings(cls, dict(values))
    if isinstance(found, BookieSettings):
        journal, ahead = KilobytesForMegabytes(256), KilobytesForMegabytes(16)
        return dataclasses.replace(found, journal_max_size_mb=journal, journal_pre_alloc_size_mb=ahead)
    if isinstance(found, LoadSettings):
        given = {fold(key) for key, _ in values}
        quick: dict[str, Any] = {name: SecondsForMinutes(getattr(found, name)) for name in _IN_MINUTES if fold(name) in given}
        return dataclasses.replace(found, **quick)
    return found


@functools.cache
def _checked(key: str) -> str:
    """BadSetting when there is none of that name."""
    return known_key(key, known_keys())


def values_of(settings: Mapping[str, str]) -> Mapping[str, str]:
    return {_checked(key): value for key, value in settings.items()}


class SomeUsage:
    """Stands in for `ports.metrics.machine_usage.LinuxUsage`: the load of a simulated machine is drawn."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def sample(self) -> MachineUse:
        return MachineUse(self._rng.random(), self._rng.random() / 4)


class Machine:
    """One host of the cluster with one program."""

    def __init__(self, loop: SimLoop, network: SimNetwork, zookeeper: SimZooKeeper, host: str, disk: SimDisk | None) -> None:
        self.host = host
        self.process = SimProcess(loop, network, host, disk, self._main)
        self.back_at = 0.0
        """Earliest time at which the machine is started again."""
        self.lives = self.refused_starts = 0
        self._loop, self._zookeeper, self._clock = loop, zookeeper, SimClock(loop)
        self._stop_asked = asyncio.Event()
        self._is_serving = False
        self._store: ZooKeeperStore | None = None

    @property
    def session_id(self) -> int:
        """Session of this life, or of the last one; 0: none."""
        return 0 if self._store is None else self._store.session_id

    @property
    def is_serving(self) -> bool:
        """Whether the broker has started and was not asked to stop."""
        return self.process.alive and self._is_serving and not self._stop_asked.is_set()

    def start(self) -> None:
        self.lives += 1
        self._stop_asked, self._is_serving = asyncio.Event(), False
        self.process.start()

    def stop(self) -> None:
        """Stops like SIGTERM; `process.ended` says when."""
        self._stop_asked.set()

    def tend(self) -> None:
        """Start it if it is down and its time has come."""
        if not self.process.alive and self._loop.time() >= self.back_at:
            self.start()

    async def _main(self) -> None:
        open_session = partial(SimSession, self._zookeeper, SESSION_SECONDS)
        try:
            store = self._store = await ZooKeeperStore.open(open_session, METADATA_SECONDS_MAX)
        except MetadataError as error:
            self._refused(error)
            return
        try:
            await self._serve(store)
        finally:
            await store.close()
        await self._check_nothing_left()

    async def _serve(self, store: ZooKeeperStore) -> None:
        raise NotImplementedError

    def _refused(self, error: Exception) -> None:
        self.refused_starts += 1
        self._loop.trace.record(self.host, f"does not start: {error}")

    async def _check_nothing_left(self) -> None:
        """Nothing may run on of a program that has stopped in good order."""
        life = self.process.life
        deadline = self._loop.time() + LET_GO_SECONDS
        while left := [task for task in self._loop.unfinished(life) if not self._is_excused(task)]:
            if self._loop.time() > deadline:
                names = ", ".join(sorted(f"{task.get_name()} ({_where(task)})" for task in left))
                raise Violation(f"{self.host} has stopped, and has left running: {names}")
            await asyncio.sleep(LET_GO_SECONDS / 50)

    def _is_excused(self, task: "asyncio.Task[Any]") -> bool:
        """This one, and what an operator waits for: that ends with the web server, which is not simulated."""
        return task is asyncio.current_task() or task.get_name() == ASKED


def _where(task: "asyncio.Task[Any]") -> str:
    frames = task.get_stack(limit=1)
    return f"{frames[0].f_code.co_qualname}" if frames else "nowhere"


class BrokerMachine(Machine):
    """A broker of the cluster."""

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        zookeeper: SimZooKeeper,
        host: str,
        seed: int,
        settings: Mapping[str, str],
        on_opened: OnOpened,
    ) -> None:
        super().__init__(loop, network, zookeeper, host, None)
        fixed = {"advertisedAddress": host, "brokerServicePort": str(BROKER_PORT), "bindAddress": "0.0.0.0"}
        self._configuration = SimConfiguration(values_of({**settings, **fixed}))
        self._seed, self._on_opened = seed, on_opened
        self.server: BrokerServer | None = None

    async def _serve(self, store: ZooKeeperStore) -> None:
        rng = stream(self._seed, f"life {self.lives} of {self.host}")
        server = self.server = BrokerServer(self._configuration, self._clock, rng, store, store)
        assert self.process.life is not None
        watch_openings(server._parts.managed_ledgers, self.process.life.name, self._on_opened)
        try:
            await server.start()
            await server.serve(WEB_PORT)
            self._is_serving = True
            await self._stop_asked.wait()
        except (BrokerFailed, MetadataError, OSError) as error:
            self._refused(error)
        finally:
            await server.stop()


def watch_openings(factory: ManagedLedgerFactory, life: str, on_opened: OnOpened) -> None:
    """Each log is told when it is open, before anybody else has it."""
    opened = factory._open

    async def watched(name: str, create: bool) -> Any:
        began = asyncio.get_running_loop().time()
        log = await opened(name, create)
        log.on_confirmed(on_opened(life, began, log))
        return log

    factory._open = watched  # type: ignore[method-assign]


class BookieMachine(Machine):
    """A bookie of the cluster, with its disk."""

    disk: SmallDisk

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        zookeeper: SimZooKeeper,
        host: str,
        seed: int,
        settings: Mapping[str, str],
    ) -> None:
        self.disk = SmallDisk(loop, stream(seed, f"disk {host}"), host)
        self.disk.size_bytes = self.disk.capacity_bytes = DISK_BYTES
        super().__init__(loop, network, zookeeper, host, self.disk)
        fixed = {
            "advertisedAddress": host,
            "bookiePort": str(BOOKIE_PORT),
            "allowLocalReads": "false",  # these are sockets of the machine that the simulation runs on
            "journalDirectory": JOURNAL,
            "ledgerDirectories": LEDGERS,
        }
        self._configuration = SimConfiguration(values_of({**settings, **fixed}))
        self._seed = seed
        self.has_failed_disk = False
        """An error was injected: until it is started again it may take no adds."""

    def start(self) -> None:
        """On a healthy disk."""
        self.disk.heal()
        self.has_failed_disk = False
        super().start()

    async def _serve(self, store: ZooKeeperStore) -> None:
        rng = stream(self._seed, f"life {self.lives} of {self.host}")
        server = BookieServer(self._configuration, self.disk, self._clock, rng, store, store)
        try:
            await server.start()
        except (BookieFailed, BookieStartError, LedgerError, MetadataError, OSError) as error:
            self._refused(error)
            self.process.kill()  # as the process, which then exits with all that it has begun
            return
        self._is_serving = True
        must_end = asyncio.create_task(server.bookie.until_it_must_end(), name="must end")
        stopping = asyncio.create_task(self._stop_asked.wait(), name="told to stop")
        await asyncio.wait([must_end, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (must_end, stopping):
            task.cancel()
        await server.stop()
