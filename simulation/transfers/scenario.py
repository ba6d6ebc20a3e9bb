"""Transfers: clients move tokens in transactions while the server is killed at any point; then the books must balance.

Phases: tokens are published; clients move them while the server dies and comes back; healing, after which every token must be
moved (liveness: a transaction whose client is gone ends when its time is up); readers see all or nothing, and nothing before
its client asked for the commit. Time is virtual.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import TextIO

from simulation.checks.history import Event, Violation
from simulation.clients.client import Recorder, RequestFailed
from simulation.drawn_settings import TRANSFERS, draw_some
from simulation.standalone.machine import ServerMachine
from simulation.transfers.books import FROM, SUBSCRIPTION, TO, Books
from simulation.transfers.client import RETRY_SECONDS, Mover, Peer, Watcher
from simulation.world.bounded import bounded
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import start_program
from simulation.world.rng import stream
from simulation.world.trace import Trace
from wire.generated import pulsar_api_pb2 as pb

CALLBACKS_MAX = 3_000_000
QUIET_SECONDS = 12.0
"""Time without tokens for any client: three times a transaction's time."""
LIVENESS_SECONDS_MAX = 120.0
MOMENT_SECONDS_MAX = 0.5
"""Time for which the moment is waited for; then the crash comes all the same."""
MOMENTS = ("", "RoundTrip", "RoundTrip", "write", "sync", "name")
"""First words of trace lines at which a crash may come."""
AT_AN_END = 0.4
"""Share of the crashes that come while a transaction is committed: between the decision and what those who took part store."""
SYNCS_OF_AN_END = (1, 1, 2, 2, 3)


class _Nobody:
    """A `Hearer` of what the books do not need."""

    def handle(self, event: Event) -> None:
        """The books are told by the clients themselves."""


class TransferScenario:
    """The run of one seed."""

    def __init__(self, seed: int, sink: TextIO | None = None) -> None:
        self.seed, self._rng = seed, stream(seed, "transfers")
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink), CALLBACKS_MAX)
        self.network = SimNetwork(self.loop, stream(seed, "network"))
        settings = {
            "transactionCoordinatorEnabled": "true",
            "managedLedgerMaxEntriesPerLedger": str(self._rng.choice((7, 30, 50_000))),
            "managedLedgerMinLedgerRolloverTimeMinutes": "0",
            "transactionBufferSnapshotMaxTransactionCount": str(self._rng.choice((2, 10, 1000))),
            "transactionBufferSegmentedSnapshotEnabled": str(self._rng.random() < 0.5).lower(),
            "transactionBufferSnapshotSegmentSize": "60",
            **draw_some(TRANSFERS, stream(seed, "more settings")),
        }
        self.server = ServerMachine(self.loop, self.network, seed, settings)
        self.recorder = Recorder(_Nobody(), self.loop.trace, self.loop.time)
        self.books = Books([b"token-%d" % number for number in range(self._rng.choice((5, 12, 25)))])

    def run(self) -> Outcome:
        events = self.recorder.kinds
        outcome = play(self.seed, self.loop, self._play(), events)
        outcome.events.update(self.books.counts)
        return outcome

    async def _play(self) -> None:
        await self.server.start()
        await self._on_host("setup", self._publish_tokens)
        count = self._rng.choice((1, 2, 3))
        coordinators = self._rng.choice((1, 2, 3))
        movers = [
            Mover(self.recorder, self.books, stream(self.seed, f"mover {number}"), number % coordinators)
            for number in range(count)
        ]
        watchers = [Watcher(self.recorder, self.books, stream(self.seed, f"watcher {number}"), number) for number in (0, 1)]
        clients = [*movers, *watchers]
        programs = [
            start_program(self.loop, self.network, f"client-{number}", client.run) for number, client in enumerate(clients)
        ]
        for _ in range(self._rng.randint(1, 6)):
            await asyncio.sleep(self._rng.choice((0.05, 0.5, 3.0)) * self._rng.random())
            await self._restart()
        self.books.moved_at = self.loop.time()
        await self._until(self._is_quiet, "tokens come back for ever")
        for client in clients:
            client.stop()
        await self._until(lambda: not any(program.alive for program in programs), "clients did not end")
        if self._rng.random() < 0.5:
            await self._restart()
        found: dict[str, list[bytes]] = {}
        for topic in (*TO, FROM):
            await self._on_host("audit", functools.partial(self._read, topic, found))
        self.books.check(found[TO[0]], found[TO[1]], found[FROM])
        await self.server.stop()

    def _is_quiet(self) -> bool:
        return self.loop.time() > self.books.moved_at + QUIET_SECONDS

    async def _restart(self) -> None:
        """Killed or without power in the middle of something; sometimes stopped in order."""
        if self._rng.random() < 0.2:
            await self.server.stop()
        else:
            await self._some_moment()
            if self._rng.random() < 0.5:
                self.server.process.kill()
            else:
                self.server.process.cut_power()
        await asyncio.sleep(0.1)
        await self.server.start()

    async def _some_moment(self) -> None:
        moment = asyncio.Event()
        if self._rng.random() < AT_AN_END:
            word, lines = "sync", self._rng.choice(SYNCS_OF_AN_END)
            self.books.next_commit = lambda: self.loop.trace.wake_at(word, lines, moment.set)
        else:
            self.loop.trace.wake_at(self._rng.choice(MOMENTS), self._rng.choice((1, 2, 5, 20)), moment.set)
        try:
            async with asyncio.timeout(MOMENT_SECONDS_MAX):
                await moment.wait()
        except TimeoutError:
            self.books.next_commit = None
            self.loop.trace.wake_no_more()

    async def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = self.loop.time() + LIVENESS_SECONDS_MAX
        while not condition():
            if self.loop.time() > deadline:
                raise Violation(f"not live: {otherwise} within {LIVENESS_SECONDS_MAX:.0f} s")
            await asyncio.sleep(0.05)

    async def _on_host(self, host: str, work: Callable[[], Awaitable[None]]) -> None:
        program = start_program(self.loop, self.network, host, work)
        await self._until(lambda: not program.alive, f"{host} did not end")

    # ---- Beginning and end

    async def _publish_tokens(self) -> None:
        """The auditor's subscriptions are there first: nothing is trimmed before it was read."""
        for topic in TO:
            auditor = Peer(self.recorder)
            await auditor.open()
            await auditor.consume(topic, "audit", pb.CommandSubscribe.Exclusive)
            auditor.connection.abort()
        peer = Peer(self.recorder)
        await peer.open()
        await peer.consume(FROM, SUBSCRIPTION, pb.CommandSubscribe.Shared)
        await peer.produce(0, FROM)
        for number, token in enumerate(self.books.tokens):
            await peer.publish(0, number, token)
        peer.connection.abort()

    async def _read(self, topic: str, found: dict[str, list[bytes]]) -> None:
        """All that a reader sees; of the topic of tokens what its subscription has left."""
        for _ in range(20):
            peer, bodies = Peer(self.recorder), []
            try:
                await peer.open()
                is_left = topic == FROM
                kind = pb.CommandSubscribe.Shared if is_left else pb.CommandSubscribe.Exclusive
                await peer.consume(topic, SUBSCRIPTION if is_left else "audit", kind)
                while (message := await peer.next(3.0)) is not None:
                    bodies.append(message[1])
            except (OSError, RequestFailed):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            finally:
                if hasattr(peer, "connection"):
                    peer.connection.abort()
            found[topic] = bodies
            return
        raise Violation(f"{topic} cannot be read")


@bounded
def run_transfer_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a standalone with transactions that this seed stands for."""
    return TransferScenario(seed, sink).run()
