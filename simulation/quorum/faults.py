"""QuorumFaults: what goes wrong around a replicated ledger, within a budget that leaves a good copy of what was acknowledged.

The budget: fewer bookies than an ack quorum lose what they had, drawn before anything happens. On those bits rot, never in the
last frame of a journal, where damage cannot be told from a write that was in flight; and one of them may have a lying disk: it
says that it has synced and has not, so that its bookie says "never accepted" of entries that it accepted. The promises for this
are in `simulation.quorum.checker`. Everything else happens to any bookie, any client, and to all of them at once: kill,
power cut (with torn writes and the loss of all that no completed sync covered), clean stop, partition in one or both ways,
slow links, slow and stalled disks, writes that fail, and syncs that fail, after which the data is readable and never durable.
The metadata store refuses, delays, and loses answers.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Mapping, Sequence

from bookie.journal.files import file_name
from simulation.quorum.bookie import BookieMachine
from simulation.quorum.client import MetadataWay
from simulation.quorum.plan import JOURNAL, LEDGERS
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.transport import SimTransport

MOMENTS = ("", "write", "sync", "sync", "name", "net")
"""First words of trace lines at which a crash may come."""
LOG_END_BYTES = 4096
DROPPED_SECONDS = 0.000_1
"""A bookie has dropped a connection by then."""
DOWN_SECONDS = (0.01, 0.3, 1.0)
ROT = ((".log", 6), (".index", 2), (".ledgers", 1), ("checkpoint", 1), (".journal", 2))
"""Endings of the files in which bits rot, and their weights."""


class QuorumFaults:
    """Faults of one run. `rotting` are the bookies of the budget."""

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
        self._is_over = False
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
        """Plays so many faults within that time."""
        weights = [weight for weight, _ in self._kinds]
        begin = self._loop.time()
        times = sorted(begin + self._rng.uniform(0.0, seconds) for _ in range(count))
        for at in times:
            await asyncio.sleep(max(0.0, at - self._loop.time()))
            [(_, fault)] = self._rng.choices(self._kinds, weights)
            self.count(fault.__name__.strip("_"))
            fault()

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self._loop.trace.record("fault", name)

    def heal(self) -> None:
        """Heals all. Faults that were planned for later come too late."""
        self._is_over = True
        self._network.heal()
        for machine in self._bookies:
            machine.disk.heal()
            machine.disk.is_lying = False
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
        """Ends a bookie in one of the ways in which bookies end; it comes back."""
        if self._is_over or not machine.process.alive or machine.is_stopping:
            return
        cut_power = machine.process.cut_power
        ways = (cut_power,) if machine.disk.is_lying else (machine.process.kill, cut_power, cut_power, machine.stop)
        self._rng.choice(ways)()
        self._revive_later(machine)

    def lose(self, machine: BookieMachine, directories: Sequence[str]) -> None:
        """Takes a bookie's directories away, with all that is in them."""
        if self._is_over:
            return
        self.count("directories lost")
        machine.lose(directories)
        self._revive_later(machine)

    def _revive_later(self, machine: BookieMachine) -> None:
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

    def lose_fence(self, client: str, machine: BookieMachine, seconds: float) -> None:
        """Loses the client's first request to the bookie; after so long the client learns that the connection broke (#2614)."""
        if not self._connections(client, machine.host):
            self._loop.trace.wake_at(f"{client}:", 1, lambda: self.lose_fence(client, machine, seconds))
            return
        self.count("fence lost")
        self._network.cut(client, machine.host)
        self._loop.hardware_later(seconds, self._drop, client, machine.host)

    def _drop(self, client: str, host: str) -> None:
        for end in self._connections(client, host):
            self._network.reset(end, at_once=True)
        self._loop.hardware_later(DROPPED_SECONDS, self._network.mend, client, host)

    def _connections(self, client: str, host: str) -> list[SimTransport]:
        return [end for end in self._network.transports if (end.name[0], end.peer_name[0]) == (client, host)]

    def _reset(self, client: str, host: str) -> None:
        for end in self._connections(client, host):
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

    def rot_last(self, machine: BookieMachine) -> None:
        """Damages the entries that were flushed last."""
        logs = self._paths(machine, ".log")
        if logs and not self._is_over:
            self.count("last entries rot")
            self._flip(machine, logs[-1], machine.disk.contents(logs[-1]).size)

    def _rot(self) -> None:
        """Flips a bit in the newest file of a kind; in a journal, before the last frame of the file that is written now."""
        machine = self._rng.choice(self._rotting)
        ending = self._rng.choices([ending for ending, _ in ROT], [weight for _, weight in ROT])[0]
        paths = self._paths(machine, ending)
        if not paths or machine.bookie is None:
            return
        path, end = paths[-1], machine.disk.contents(paths[-1]).size
        if ending == ".journal":
            mark = machine.bookie.frames[0]
            path, end = f"{JOURNAL}/{file_name(mark.file_id)}", mark.offset if mark.sequence else 0
        self._flip(machine, path, end)

    def _paths(self, machine: BookieMachine, ending: str) -> list[str]:
        return [path for path in machine.disk.paths() if path.endswith(ending) and path.startswith((JOURNAL, LEDGERS))]

    def _flip(self, machine: BookieMachine, path: str, end: int) -> None:
        """Flips a bit of it; in a log, near the end of its contents, which is filled up with zeros."""
        if path not in machine.disk.paths():
            return
        file, start = machine.disk.contents(path), 0
        if path.endswith(".log"):
            start = max(0, end - LOG_END_BYTES)
            end = start + len(file.read(start, end - start).rstrip(b"\0"))
        if end > start:
            file.flip_bit(self._rng.randrange(start, end), self._rng.randrange(8))
            machine.process.may_die = True
