"""Faults: performs a plan's faults on a running server, heals them, and tells the checker what a crash may have undone."""

import asyncio
import errno
import random
from collections.abc import Callable, Sequence

from broker.errors import BrokerError
from simulation.checks.history import ServerStopped, Stop
from simulation.clients.client import SERVER, Recorder
from simulation.standalone.machine import ServerMachine
from simulation.standalone.plan import WORK_SECONDS, Fault, FaultKind
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork

PERSIST_SECONDS = 2.5
"""A mark is persisted so soon after it was set in memory, on a disk that works: the limit of one per second, and some."""
STOPS = {FaultKind.KILL: Stop.KILL, FaultKind.POWER_CUT: Stop.POWER_CUT, FaultKind.RESTART: Stop.CLEAN}
MOMENTS = ("", "Acknowledged", "Acknowledged", "AckSent", "RoundTrip", "write", "sync", "name")
"""First words of trace lines at which a crash may come: a receipt is there, a disk call is done, or anything at all."""
NEVER = float("inf")


class Faults:
    """Faults of one run."""

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        server: ServerMachine,
        recorder: Recorder,
        rng: random.Random,
        topic: str,
    ) -> None:
        self._loop, self._network, self._server, self._recorder, self._rng = loop, network, server, recorder, rng
        self._topic = topic
        self._disk_trouble: list[tuple[float, float]] = []
        self._has_failed_disk = False
        self._actions: dict[FaultKind, Callable[[Fault, str], None]] = {
            FaultKind.RESET: self._reset,
            FaultKind.PARTITION: self._partition,
            FaultKind.ONE_WAY_PARTITION: self._partition,
            FaultKind.SLOW_LINK: self._slow_link,
            FaultKind.DEAF_CLIENT: self._deafen,
            FaultKind.SLOW_DISK: self._slow_disk,
            FaultKind.STALLED_DISK: self._stall_disk,
            FaultKind.DISK_ERROR: self._fail_disk,
            FaultKind.FULL_DISK: self._fill_disk,
            FaultKind.CLOCK_JUMP: self._jump_clock,
        }

    async def play(self, faults: Sequence[Fault]) -> None:
        """One after the other, each at its time or when the one before lets it; then heal."""
        for fault in faults:
            await asyncio.sleep(max(0.0, fault.at - self._loop.time()))
            self._loop.trace.record("fault", f"{fault.kind.value} {fault.seconds} client-{fault.client}")
            if fault.kind in STOPS:
                await self.restart(STOPS[fault.kind], fault.seconds)
            elif fault.kind is FaultKind.UNLOAD:
                await self._unload()
            else:
                self._actions[fault.kind](fault, f"client-{fault.client}")
        await asyncio.sleep(max(0.0, WORK_SECONDS - self._loop.time()))
        self._network.heal()
        self._server.disk.heal()
        if self._has_failed_disk:
            await self.restart(Stop.KILL)

    # The network

    def _reset(self, fault: Fault, client: str) -> None:
        for transport in [end for end in self._network.transports if end.name[0] == client]:
            self._network.reset(transport)

    def _partition(self, fault: Fault, client: str) -> None:
        self._network.cut(client, SERVER)
        if fault.kind is FaultKind.PARTITION:
            self._network.cut(SERVER, client)
        self._loop.hardware_later(fault.seconds, self._network.heal)

    def _slow_link(self, fault: Fault, client: str) -> None:
        self._network.slow(SERVER, client, 50.0)
        self._loop.hardware_later(fault.seconds, self._network.heal)

    def _deafen(self, fault: Fault, client: str) -> None:
        """The client program does not read what comes."""
        for transport in [end for end in self._network.transports if end.name[0] == client]:
            transport.pause_reading()
            self._loop.hardware_later(fault.seconds, transport.resume_reading)

    # The disk and the clock

    def _slow_disk(self, fault: Fault, client: str) -> None:
        self._disk_trouble.append((self._loop.time(), self._loop.time() + fault.seconds))
        self._server.disk.slowness = 30.0
        self._loop.hardware_later(fault.seconds, self._server.disk.speed_up)

    def _stall_disk(self, fault: Fault, client: str) -> None:
        self._disk_trouble.append((self._loop.time(), self._loop.time() + fault.seconds))
        self._server.disk.stall(fault.seconds)

    def _fail_disk(self, fault: Fault, client: str) -> None:
        """Fails the disk. Its user may be unusable until the next start."""
        kind = self._rng.choice(("write", "sync", "sync", "read", "name"))
        self._server.disk.fail(kind, errno.EIO, self._rng.choice(("", "journal", "ledgers")), self._rng.choice((1, 3)))
        self._disk_fails()

    def _fill_disk(self, fault: Fault, client: str) -> None:
        self._server.disk.fail(
            "write", errno.ENOSPC, self._rng.choice(("", "journal", "ledgers")), self._rng.choice((1, 3, 20))
        )
        self._disk_fails()

    def _disk_fails(self) -> None:
        self._has_failed_disk = True
        self._disk_trouble.append((self._loop.time(), NEVER))

    def _jump_clock(self, fault: Fault, client: str) -> None:
        self._server.clock.offset_ms += self._rng.choice((-3_600_000, -1000, 1000, 3_600_000))

    # The server

    async def _unload(self) -> None:
        task = self._server.unload(self._topic)
        if task is not None:
            try:
                await task
            except BrokerError:
                if not self._has_failed_disk:
                    raise

    async def restart(self, how: Stop, down_seconds: float = 0.1) -> None:
        """The server ends and comes back; after a crash it may crash again while it recovers."""
        await self._end(Stop.KILL if self._has_failed_disk and how is Stop.CLEAN else how)
        await asyncio.sleep(down_seconds)
        self._server.disk.heal()
        self._has_failed_disk = False
        self._disk_trouble = [(begin, min(end, self._loop.time())) for begin, end in self._disk_trouble]
        if how is not Stop.CLEAN and self._rng.random() < 0.3:
            self._server.process.start()
            await self._end(self._rng.choice((Stop.KILL, Stop.POWER_CUT)))
        await self._server.start()

    async def _end(self, how: Stop) -> None:
        process = self._server.process
        if how is Stop.CLEAN:
            await self._server.stop()
        else:
            await self._some_moment()
            if how is Stop.KILL:
                process.kill()
            else:
                process.cut_power()
        now = self._recorder.clock()
        self._recorder.record(ServerStopped(now, how, self._persisted_until(now)))

    async def _some_moment(self) -> None:
        """Waits for a moment in the middle of some work, if any is going on."""
        moment = asyncio.Event()
        self._loop.trace.wake_at(self._rng.choice(MOMENTS), self._rng.choice((1, 1, 2, 5, 20)), moment.set)
        try:
            async with asyncio.timeout(self._rng.choice((0.01, 0.5, 0.5))):
                await moment.wait()
        except TimeoutError:
            self._loop.trace.wake_no_more()

    def _persisted_until(self, now: float) -> float:
        """The latest time that PERSIST_SECONDS without trouble on the disk followed."""
        until = now - PERSIST_SECONDS
        for begin, end in reversed(self._disk_trouble):
            if begin < until + PERSIST_SECONDS and until < end:
                until = begin - PERSIST_SECONDS
        return until
