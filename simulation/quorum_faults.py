"""QuorumFaults: what goes wrong around a replicated ledger, within a budget that leaves a good copy of what was acknowledged.

The budget: bits rot on fewer bookies than an ack quorum, drawn before anything happens, and never in the last frame of a
journal, where damage cannot be told from a write that was in flight. Everything else happens to any bookie, any client, and to
all of them at once: kill, power cut (with torn writes and the loss of all that no completed sync covered), clean stop,
partition in one or both directions, slow links, slow and stalled disks, writes that fail, and syncs that fail, after which
the data is readable and never durable (a lost fsync that is told; one that is not makes a bookie promise "never accepted" of
what it had accepted, which this protocol does not survive). The metadata store refuses, delays, and loses answers.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Mapping, Sequence

from simulation.loop import SimLoop
from simulation.network import SimNetwork
from simulation.process import SimProcess
from simulation.quorum_bookie import JOURNAL, LEDGERS, BookieMachine
from simulation.quorum_client import MetadataWay

MOMENTS = ("", "write", "sync", "sync", "name", "net")
"""First words of trace lines at which a crash may come."""
RESET_SECONDS = 0.03
"""A reset has arrived by then."""
DOWN_SECONDS = (0.01, 0.3, 1.0)
ROT = ((".log", 6), (".index", 2), (".ledgers", 1), ("checkpoint", 1), (".txn", 2))
"""Where bits rot, and how often."""


class QuorumFaults:
    """Of one run. `rotting` are the bookies of the budget."""

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        rng: random.Random,
        bookies: Sequence[BookieMachine],
        rotting: Sequence[BookieMachine],
        clients: Mapping[str, SimProcess],
        ways: Mapping[str, MetadataWay],
    ) -> None:
        self.counts: dict[str, int] = {}
        self._loop, self._network, self._rng = loop, network, rng
        self._bookies, self._rotting, self._clients, self._ways = bookies, rotting, clients, ways
        self._kinds: Sequence[tuple[int, Callable[[], None]]] = (
            (9, self._crash),
            (4, self._cut_link),
            (2, self._reset_connections),
            (4, self._slow_links),
            (2, self._slow_disk),
            (2, self._stall_disk),
            (2, self._fail_sync),
            (1, self._fail_write),
            (2, self._kill_client),
            (2, self._trouble_metadata),
            (6 if rotting else 0, self._rot),
        )

    async def play(self, count: int, seconds: float) -> None:
        """So many faults within that time."""
        weights = [weight for weight, _ in self._kinds]
        begin = self._loop.time()
        times = sorted(begin + self._rng.uniform(0.0, seconds) for _ in range(count))
        for at in times:
            await asyncio.sleep(max(0.0, at - self._loop.time()))
            [(_, fault)] = self._rng.choices(self._kinds, weights)
            name = fault.__name__.strip("_")
            self.counts[name] = self.counts.get(name, 0) + 1
            self._loop.trace.record("fault", name)
            fault()

    def heal(self) -> None:
        self._network.heal()
        for machine in self._bookies:
            machine.disk.heal()
        for way in self._ways.values():
            way.is_cut, way.lost_answers, way.answer_seconds = False, 0.0, 0.001

    # Machines

    def _crash(self) -> None:
        machine = self._rng.choice(self._bookies)
        if self._rng.random() < 0.6:
            self._loop.trace.wake_at(self._rng.choice(MOMENTS), self._rng.choice((1, 2, 5, 20)), lambda: self._soon(machine))
        else:
            self.end(machine)

    def _soon(self, machine: BookieMachine) -> None:
        self._loop.hardware_later(0.0, self.end, machine)

    def end(self, machine: BookieMachine) -> None:
        """In one of the ways in which a bookie ends; it comes back."""
        if not machine.process.alive or machine.is_stopping:
            return
        self._rng.choice((machine.process.kill, machine.process.cut_power, machine.process.cut_power, machine.stop))()
        self._loop.hardware_later(self._rng.choice(DOWN_SECONDS), self.revive, machine)

    def revive(self, machine: BookieMachine) -> None:
        """A clean stop may still be under way: then that is what was asked for."""
        if not machine.process.alive and not machine.process.error:
            machine.start()

    def _kill_client(self) -> None:
        process = self._rng.choice(list(self._clients.values()))
        process.kill()

    # The network

    def _cut_link(self) -> None:
        client, bookies = self._rng.choice(list(self._clients)), self._some_bookies()
        for machine in bookies:
            if self._rng.random() < 0.8:
                self._network.cut(client, machine.host)
            if self._rng.random() < 0.8:
                self._network.cut(machine.host, client)
        self._loop.hardware_later(self._rng.choice((0.05, 0.5, 3.0)), self._network.heal)

    def _slow_links(self) -> None:
        for client in self._clients:
            for machine in self._some_bookies():
                self._network.slow(client, machine.host, self._rng.choice((10.0, 100.0, 500.0)))

    def _trouble_metadata(self) -> None:
        way = self._rng.choice(list(self._ways.values()))
        way.is_cut = self._rng.random() < 0.3
        way.lost_answers = self._rng.choice((0.0, 0.3))
        way.answer_seconds = self._rng.choice((0.001, 0.1))
        self._loop.hardware_later(self._rng.choice((0.1, 1.0)), self._end_trouble, way)

    def _end_trouble(self, way: MetadataWay) -> None:
        way.is_cut, way.lost_answers, way.answer_seconds = False, 0.0, 0.001

    def lose_requests(self, client: str, machine: BookieMachine, seconds: float) -> None:
        """What the client sends to the bookie in this time is lost with the connection: a fence, for one (#2614)."""
        self.counts["lost requests"] = self.counts.get("lost requests", 0) + 1
        self._network.cut(client, machine.host)
        self._loop.hardware_later(seconds, self._reset, client, machine.host)
        self._loop.hardware_later(seconds + RESET_SECONDS, self._network.heal)

    def _reset(self, client: str, host: str) -> None:
        for end in [end for end in self._network.transports if (end.name[0], end.peer_name[0]) == (client, host)]:
            self._network.reset(end)

    def _reset_connections(self) -> None:
        for machine in self._some_bookies():
            self._reset(self._rng.choice(list(self._clients)), machine.host)

    def _some_bookies(self) -> list[BookieMachine]:
        return self._rng.sample(self._bookies, self._rng.randint(1, len(self._bookies)))

    # Disks

    def _slow_disk(self) -> None:
        for machine in self._some_bookies():
            machine.disk.slowness = self._rng.choice((5.0, 50.0))
            self._loop.hardware_later(self._rng.choice((0.1, 1.0)), machine.disk.speed_up)

    def _stall_disk(self) -> None:
        self._rng.choice(self._bookies).disk.stall(self._rng.choice((0.1, 1.0, 2.5)))

    def _fail_sync(self) -> None:
        self._fail("sync", errno.EIO)

    def _fail_write(self) -> None:
        self._fail("write", self._rng.choice((errno.EIO, errno.ENOSPC)))

    def _fail(self, kind: str, code: int) -> None:
        machine = self._rng.choice(self._bookies)
        if machine.is_serving:
            machine.has_failed_disk = True
            machine.disk.fail(kind, code, self._rng.choice(("", JOURNAL, LEDGERS)), self._rng.choice((1, 3)))

    def _rot(self) -> None:
        """A bit, in a file that was written. Of a journal: before its last frame, and in the file that is written now."""
        machine = self._rng.choice(self._rotting)
        ending = self._rng.choices([ending for ending, _ in ROT], [weight for _, weight in ROT])[0]
        paths = [path for path in machine.disk.paths() if path.endswith(ending) and path.startswith((JOURNAL, LEDGERS))]
        if not paths or machine.bookie is None:
            return
        path, end = paths[-1], machine.disk.contents(paths[-1]).size
        if ending == ".txn":
            mark = machine.bookie.frames[0]
            path, end = next((found for found in paths if f"{mark.file_id:x}.txn" in found), path), mark.offset
        start = max(0, end - 4096) if ending == ".log" else 0
        if end > start:
            machine.disk.contents(path).flip_bit(self._rng.randrange(start, end), self._rng.randrange(8))
            machine.process.may_die = True
