"""BookieMachine: a bookie on a host of its own, with its port, its disk and its deaths; what it stores the checker hears."""

import asyncio
from functools import partial

from bookie.bookie import Bookie
from bookie.journal.mark import JournalMark
from bookie.server.listener import BookieListener
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from simulation.clock import SimClock
from simulation.disk import SimDisk
from simulation.history import Violation
from simulation.loop import SimLoop
from simulation.network import SimNetwork
from simulation.process import SimProcess
from simulation.quorum_checker import QuorumChecker
from simulation.rng import stream
from wire.bookie_codes import BookieError
from wire.run import EntryRun

PORT = 3181
JOURNAL, LEDGERS = "/j", "/l"
SERVER = BookieServerSettings(bookie_port=PORT)


class WatchedBookie(Bookie):
    """A bookie that says what it has stored, in the moment before it answers."""

    name = ""
    checker: QuorumChecker
    frames: tuple[JournalMark, JournalMark] = (JournalMark(), JournalMark())
    """Where the journal ended before the last frame that was answered, and after it."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        was_fenced = self.name in self.checker.fenced and not recovery
        future = super().add(run, master_key, recovery=recovery)
        future.add_done_callback(partial(self._on_added, run, was_fenced))
        return future

    async def ensure_fenced(self, ledger_id: int, master_key: bytes) -> None:
        await super().ensure_fenced(ledger_id, master_key)
        self.checker.on_fenced(self.name)

    def _on_added(self, run: EntryRun, was_fenced: bool, future: "asyncio.Future[None]") -> None:
        if not future.cancelled() and future.exception() is None:
            if self._journal.durable != self.frames[1]:
                self.frames = (self.frames[1], self._journal.durable)
            try:
                self.checker.on_stored(self.name, run, was_fenced=was_fenced)
            except Violation as violation:
                asyncio.get_running_loop().call_exception_handler({"exception": violation})

    async def check_kept(self, ledger_id: int) -> None:
        """Everything that it ever answered for is there, and the fence too."""
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
        self.disk = SimDisk(loop, stream(seed, f"disk {host}"), host)
        self.process = SimProcess(loop, network, host, self.disk, self._main)
        self.bookie: WatchedBookie | None = None
        self.has_failed_disk = False
        """An error was injected: until it is started again it may take no adds."""
        self._loop, self._seed, self._settings, self._checker = loop, seed, settings, checker
        self._lives = 0
        self._is_serving = False
        self._stop_asked = asyncio.Event()

    def start(self) -> None:
        """On a healthy disk. It serves a little later."""
        self.disk.heal()
        self.has_failed_disk = False
        self._stop_asked = asyncio.Event()
        self._is_serving = False
        self.process.start()

    @property
    def is_serving(self) -> bool:
        """It has started and was not asked to stop."""
        return self.process.alive and self._is_serving and not self.is_stopping

    @property
    def is_stopping(self) -> bool:
        """Or it has."""
        return self._stop_asked.is_set()

    def stop(self) -> None:
        """As SIGTERM; `process.ended` says when."""
        self._stop_asked.set()

    async def _main(self) -> None:
        self._lives += 1
        rng = stream(self._seed, f"life {self._lives} of {self.host}")
        self.bookie = WatchedBookie(self.disk, self._settings, SimClock(self._loop), rng)
        self.bookie.name, self.bookie.checker = self.name, self._checker
        await self.bookie.start()
        listener = BookieListener(self.bookie, SERVER)
        await listener.listen(None, PORT)
        self._is_serving = True
        await self._stop_asked.wait()
        await listener.close()
        await self.bookie.stop()
