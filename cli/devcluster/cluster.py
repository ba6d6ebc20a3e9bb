"""Devcluster: the members together. Owns their order at start and stop, and what is done on demand to one of them."""

import asyncio
import difflib
from collections.abc import Callable
from pathlib import Path

from cli.devcluster.lines import table
from cli.devcluster.member import Member, State
from cli.devcluster.plan import ADDED, BOOKIE, ZOOKEEPER, ClusterPlan, DevclusterFailed


class Devcluster:
    """`start` once, `stop` once; `do` in between."""

    def __init__(self, plan: ClusterPlan, tell: Callable[[str, str], None]) -> None:
        self._plan, self._tell = plan, tell
        self._stages = [[Member(each, tell) for each in stage] for stage in plan.stages]
        self.members = {member.plan.name: member for stage in self._stages for member in stage if not member.plan.ends}
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        """Each stage when the one before it is ready. DevclusterFailed as soon as one cannot; then `stop` ends the others."""
        for stage in self._stages:
            starts = [asyncio.create_task(member.start(), name=f"start {member.plan.name}") for member in stage]
            try:
                for done in asyncio.as_completed(starts):
                    await done
            finally:
                for task in starts:
                    task.cancel()
                await asyncio.gather(*starts, return_exceptions=True)

    async def stop(self) -> None:
        """Brokers, bookies, ZooKeeper, each kind together. Without ZooKeeper no member could sign off: all are killed."""
        async with self._busy:
            if self.members[ZOOKEEPER].state is State.DOWN:
                self.kill_now()
            for stage in reversed(self._stages):
                await asyncio.gather(*(member.stop() for member in stage))

    def kill_now(self) -> None:
        for member in self.members.values():
            member.kill_now()

    async def do(self, verb: str, name: str) -> str:
        """Does one thing to a member and returns the outcome, for people. DevclusterFailed."""
        async with self._busy:
            match verb:
                case "status":
                    return "\n".join(self.status())
                case "kill":
                    return await self._kill(self._member(name))
                case "stop":
                    await self._member(name).stop()
                    return f"{name} is stopped"
                case "add-bookie":
                    return await self._add_bookie()
                case "restart":
                    member = self._member(name)
                    await member.stop()
                    await member.start()
                    return f"{name} is ready, pid {member.pid}"
        raise DevclusterFailed(f"{verb!r}: a newer interpulse than the one that runs")

    async def _add_bookie(self) -> str:
        """New ledgers are written to it from now on, and auto-recovery copies to it. It stays: the data directory says so."""
        bookies = next(stage for stage in self._stages if stage[0].plan.name == f"{BOOKIE}1")
        member = Member(self._plan.next_bookie(len(bookies) + 1), self._tell)
        await member.start()
        bookies.append(member)
        self.members[member.plan.name] = member
        await asyncio.to_thread(Path(ADDED).write_text, str(len(bookies)))
        return f"{member.plan.name} is ready, pid {member.pid}: {'  '.join(member.plan.urls)}"

    async def _kill(self, member: Member) -> str:
        if member.state is State.DOWN:
            raise DevclusterFailed(f"{member.plan.name} does not run")
        await member.kill()
        return f"{member.plan.name} is killed"

    def _member(self, name: str) -> Member:
        found = self.members.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.members, n=1) or list(self.members)
            raise DevclusterFailed(f"there is no {name} here; is it {', '.join(near)}?")
        return found

    def status(self) -> list[str]:
        """A line for each member, below a heading."""
        rows: list[tuple[str, ...]] = [("member", "state", "pid", "where")]
        for name, member in self.members.items():
            pid = "" if member.state is State.DOWN else str(member.pid)
            rows.append((name, member.state.value, pid, "  ".join(member.plan.urls)))
        return table(rows)
