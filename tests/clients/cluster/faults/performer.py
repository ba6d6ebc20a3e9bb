"""Performs a schedule on a cluster: each fault in a thread of its own, from its time on, until what it broke is mended.

Faults that touch the same member take turns, however late that makes the second: a busy machine makes a schedule longer, and no
other one of it.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Lock
from time import monotonic

from tests.clients.cluster.faults.cluster import FaultCluster
from tests.clients.cluster.faults.network import run
from tests.clients.cluster.faults.requests import asked
from tests.clients.cluster.faults.schedule import Fault, Kind, Schedule

PERFORM_SECONDS_MAX = 600.0
RESET_EVERY_SECONDS = 0.4
FROZEN_SECONDS, THAWED_SECONDS = 0.5, 0.1
"""Times for which a slow disk is frozen, without writes, and then thawed."""
FULL_LEAVES = 0.02
"""Share of a disk that is left when it is full."""
UNLOAD_EVERY_SECONDS, SPLIT_EVERY_SECONDS = 0.3, 0.7


class Performer:
    """`perform` once. `story` tells what was done and when, in seconds since the beginning."""

    def __init__(self, cluster: FaultCluster) -> None:
        self._cluster = cluster
        self._over = Event()
        self._locks = {name: Lock() for name in (*cluster.members, "zookeepers", Kind.UNLOAD.value, Kind.SPLIT.value)}
        self._begin = monotonic()
        self.story: list[str] = []
        self.wrong: list[str] = []
        """Members that did not stop as asked, a line each."""

    def perform(self, schedule: Schedule) -> None:
        """Returns when everything is healed; the first error of a fault that could not be done or undone."""
        if not schedule.faults:
            return
        self._begin = monotonic()
        with ThreadPoolExecutor(len(schedule.faults), "fault") as pool:
            doing = [pool.submit(self._perform, fault) for fault in schedule.faults]
            try:
                for each in doing:
                    each.result(timeout=PERFORM_SECONDS_MAX)
            finally:
                self._over.set()

    def _perform(self, fault: Fault) -> None:
        self._over.wait(max(0.0, fault.begin_ms / 1000 - (monotonic() - self._begin)))
        with ExitStack() as held:
            for name in sorted(fault.held & self._locks.keys()):
                held.enter_context(self._locks[name])
            self._tell(f"{fault}: begins")
            self._do(fault)
            self._tell(f"{fault}: healed")

    def _tell(self, what: str) -> None:
        self.story.append(f"{monotonic() - self._begin:7.2f} {what}")

    def _do(self, fault: Fault) -> None:
        {
            Kind.KILL: self._kill,
            Kind.STOP: self._stop,
            Kind.PARTITION: self._part,
            Kind.RESET: self._reset,
            Kind.SLOW_DISK: self._slow_disk,
            Kind.FULL_DISK: self._full_disk,
            Kind.LEADER_KILL: self._kill_leader,
            Kind.QUORUM_LOSS: self._lose_quorum,
            Kind.ROLL_BROKERS: self._roll,
            Kind.ROLL_BOOKIES: self._roll,
            Kind.UNLOAD: self._unload,
            Kind.SPLIT: self._split,
        }[fault.kind](fault)

    def _last(self, fault: Fault) -> None:
        self._over.wait(fault.lasts_ms / 1000)

    def _repeat(self, fault: Fault, every: float, step: Callable[[int], None]) -> None:
        """Repeats `step` until the fault is over; once at least."""
        end, turn = monotonic() + fault.lasts_ms / 1000, 0
        while turn == 0 or (monotonic() < end and not self._over.is_set()):
            step(turn)
            turn += 1
            self._over.wait(every)

    def _kill(self, fault: Fault) -> None:
        """kill -9, away for a while, started again."""
        member = self._cluster.members[fault.targets[0]]
        member.kill()
        self._last(fault)
        member.again()

    def _stop(self, fault: Fault) -> None:
        """SIGSTOP, SIGCONT."""
        member = self._cluster.members[fault.targets[0]]
        member.pause()
        try:
            self._last(fault)
        finally:
            member.go_on()

    def _part(self, fault: Fault) -> None:
        """Packets between the first and each of the others are dropped, both ways."""
        one, *others = fault.targets
        with ExitStack() as parted:
            for other in others:
                self._cluster.network.part(one, other)
                parted.callback(self._cluster.network.join, one, other)
            self._last(fault)

    def _reset(self, fault: Fault) -> None:
        """All connections of a member, again and again."""
        self._repeat(fault, RESET_EVERY_SECONDS, lambda _turn: self._tell_resets(fault.targets[0]))

    def _tell_resets(self, name: str) -> None:
        self._tell(f"{self._cluster.network.reset(name)} connections of {name} reset")

    def _slow_disk(self, fault: Fault) -> None:
        """Freezes the disk most of the time: writes and flushes wait."""
        disk = str(self._cluster.disks[fault.targets[0]].path)

        def freeze(_turn: int) -> None:
            run("fsfreeze", "--freeze", disk)
            try:
                self._over.wait(FROZEN_SECONDS)
            finally:
                run("fsfreeze", "--unfreeze", disk)

        self._repeat(fault, THAWED_SECONDS, freeze)

    def _full_disk(self, fault: Fault) -> None:
        disk = self._cluster.disks[fault.targets[0]].path
        found, ballast = os.statvfs(disk), disk / "ballast"
        try:
            with ballast.open("wb") as file:
                room = found.f_frsize * (found.f_bavail - int(found.f_blocks * FULL_LEAVES))
                os.posix_fallocate(file.fileno(), 0, max(room, 1))
            self._last(fault)
        finally:
            ballast.unlink(missing_ok=True)

    def _kill_leader(self, fault: Fault) -> None:
        leader = self._cluster.leader()
        if leader is None:  # they are electing one
            self._tell("no leader to kill")
            return
        self._tell(f"{leader.name} leads")
        leader.kill()
        self._last(fault)
        leader.again()

    def _lose_quorum(self, fault: Fault) -> None:
        """The leader and another are killed, and come back at the same time."""
        servers = list(self._cluster.zookeepers.values())
        leader = self._cluster.leader() or servers[0]
        lost = [leader, next(each for each in servers if each is not leader)]
        for each in lost:
            each.kill()
        self._last(fault)
        for each in lost:
            each.launch()
        for each in lost:
            each.wait_until_ready()

    def _roll(self, fault: Fault) -> None:
        """One after the other is stopped as one stops servers, and started again."""
        for name in fault.targets:
            self._stop_as_asked(name)
            self._cluster.members[name].again()
            self._last(fault)

    def _stop_as_asked(self, name: str) -> None:
        try:
            code = self._cluster.members[name].stop()
        except AssertionError as error:  # killed by now, and the rest of the schedule goes on
            self.wrong.append(f"{name} {str(error).partition(chr(10))[0]}")
            return
        if code:
            self.wrong.append(f"{name} stopped with exit code {code}")

    def _unload(self, fault: Fault) -> None:
        """The whole namespace, of one broker after the other."""
        self._repeat(fault, UNLOAD_EVERY_SECONDS, lambda turn: self._tell(asked(self._cluster, turn, "unload")))

    def _split(self, fault: Fault) -> None:
        """The largest bundle, every other time unloaded too."""
        self._repeat(
            fault,
            SPLIT_EVERY_SECONDS,
            lambda turn: self._tell(asked(self._cluster, turn, f"LARGEST/split?unload={'false' if turn % 2 else 'true'}")),
        )
