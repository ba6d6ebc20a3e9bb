"""BookieMachine: a bookie on a host of its own, with its port, its disk and its deaths; the checker sees what it stores."""

import asyncio
import random
from collections.abc import Sequence
from functools import partial

from bookie.bookie import Bookie
from bookie.journal.format_v1 import JournalMark
from bookie.server.listener import BookieListener
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from ports.loop.promise import listen
from simulation.checks.history import Violation
from simulation.disks.disk import SimDisk
from simulation.quorum.checker import QuorumChecker
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from wire.bookie.codes import BookieCode, BookieError
from wire.kernels.mixes import runs_of
from wire.run import EntryMix, EntryRun

PORT = 3181
SERVER = BookieServerSettings(bookie_port=PORT)


class WatchedBookie(Bookie):
    """A bookie that says what it has stored, in the moment before it answers."""

    name = ""
    checker: QuorumChecker
    frames: tuple[JournalMark, JournalMark] = (JournalMark(), JournalMark())
    """End of the journal before the last frame that was answered, and after it."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        was_fenced = self.name in self.checker.fenced and not recovery
        future = super().add(run, master_key, recovery=recovery)
        listen(future, partial(self._on_added, (run,), was_fenced, recovery))
        return future

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        future = super().add_mix(mix, master_key)
        listen(future, partial(self._on_added, runs_of([mix]), self.name in self.checker.fenced, False))
        return future

    async def ensure_fenced(self, ledger_id: int, master_key: bytes) -> None:
        await super().ensure_fenced(ledger_id, master_key)
        self.checker.on_fenced(self.name)

    def _on_added(self, runs: Sequence[EntryRun], was_fenced: bool, recovery: bool, future: "asyncio.Future[None]") -> None:
        if not future.cancelled() and future.exception() is None:
            if self._journal.durable != self.frames[1]:
                self.frames = (self.frames[1], self._journal.durable)
            try:
                for run in runs:
                    self.checker.on_stored(self.name, run, was_fenced=was_fenced, recovery=recovery)
            except Violation as violation:
                asyncio.get_running_loop().call_exception_handler({"exception": violation})

    async def has_forgotten(self) -> bool:
        """Whether it says of an entry that it answered for that there is none."""
        for entry_id in self.checker.answered_by(self.name):
            try:
                await self.read(self.checker.ledger_id, entry_id, 1, 1)
            except BookieError as error:
                return error.code in (BookieCode.ENOENTRY, BookieCode.ENOLEDGER)
        return False

    async def check_kept(self) -> None:
        """Everything that it ever answered for is there, and the fence too."""
        ledger_id = self.checker.ledger_id
        if self.name in self.checker.fenced and not self._ledgers.refusal(ledger_id, b"", recovery=False):
            raise Violation(f"{self.name} has lost its fence")
        for entry_id, stored in self.checker.answered_by(self.name).items():
            try:
                run = await self.read(ledger_id, entry_id, 1, 1)
            except BookieError as error:
                raise Violation(f"{self.name} has lost entry {entry_id}: {error}") from None  # its cause is said
            if bytes(memoryview(run.buffer)[run.offsets[0] : run.offsets[1]]) != stored:
                raise Violation(f"{self.name} has other bytes of entry {entry_id} than were stored")


class BookieMachine:
    """One host. `start`, `kill`, `cut_power` may come in any order; what it stored stays."""

    def __init__(
        self, loop: SimLoop, network: SimNetwork, host: str, seed: int, settings: BookieSettings, checker: QuorumChecker
    ) -> None:
        self.host, self.name = host, f"{host}:{PORT}"
        self.disk = self.make_disk(loop, stream(seed, f"disk {host}"), host)
        self.process = SimProcess(loop, network, host, self.disk, self._main)
        self.bookie: WatchedBookie | None = None
        self.has_left = False
        self.has_failed_disk = False
        """An error was injected: until it is started again it may take no adds."""
        self._loop, self._seed, self._settings, self._checker = loop, seed, settings, checker
        self._lives = 0
        self._has_started = False
        """The cluster knows the bookie's cookie."""
        self._is_serving = False
        self._stop_asked = asyncio.Event()

    def make_disk(self, loop: SimLoop, rng: random.Random, host: str) -> SimDisk:
        return SimDisk(loop, rng, host)

    def start(self) -> None:
        """On a healthy disk. It serves a little later; never, when it has left."""
        if self.has_left:
            return
        self.disk.heal()
        self.has_failed_disk = False
        self._stop_asked = asyncio.Event()
        self._is_serving = False
        self.process.start()

    @property
    def is_serving(self) -> bool:
        """Whether the bookie has started and was not asked to stop."""
        return self.process.alive and self._is_serving and not self.is_stopping

    @property
    def is_stopping(self) -> bool:
        """Or it has."""
        return self._stop_asked.is_set()

    def stop(self) -> None:
        """Stops like SIGTERM; `process.ended` says when."""
        self._stop_asked.set()

    def leave(self) -> None:
        """Removes the host for good."""
        self.has_left = True
        self.process.cut_power()
        self._checker.gone = self.name

    def lose(self, directories: Sequence[str]) -> None:
        """The power is cut, and when it is started again these are empty."""
        self.process.cut_power()
        for directory in directories:
            self.disk.empty(directory)

    async def _main(self) -> None:
        self._lives += 1
        rng = stream(self._seed, f"life {self._lives} of {self.host}")
        was_known = self._settings.allows_limbo and self._has_started
        self.bookie = WatchedBookie(self.disk, self._settings, SimClock(self._loop), rng, was_known=was_known)
        self.bookie.name, self.bookie.checker = self.name, self._checker
        await self.bookie.start()
        if self.bookie.needs_limbo:
            await self.bookie.enter_limbo(self._checker.ledgers_of(self.name))
            self._checker.count("limbo entered")
        if self.name == self._checker.forgetful and await self.bookie.has_forgotten():
            self._checker.count("liar forgot what it had")
        self._has_started = True
        listener = BookieListener(self.bookie, SERVER)
        await listener.listen(None, PORT)
        self._is_serving = True
        await self._stop_asked.wait()
        await listener.close()
        await self.bookie.stop()
