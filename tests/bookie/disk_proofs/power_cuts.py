"""Rounds of load, power cut and restart of one bookie on one disk."""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.bookie.disk_proofs.acknowledged import Load, Record, check, connected
from tests.bookie.disk_proofs.bookie_on_disk import BookieOnDisk
from tests.bookie.disk_proofs.mounts import Cut, PowerCutMount
from tests.clients.bookie_process import BookieDidNotStart

DISK_MEGABYTES = 192
RUNS_MAX = 600
"""Acknowledged before the power cut is asked for."""
WRITES_MAX = 60
"""Writes of the disk for which the cut then waits: it falls between a write and its flush as well."""
WRITES_OF_START_MAX = 80
CUTS_AT_START = 0.4
"""Share of the rounds in which the power goes a second time, around the start."""
CUT_SECONDS_MAX = 60.0


class Round(NamedTuple):
    """Observations of one round."""

    acknowledged: int
    """Entries, over all rounds so far; each of them was found."""
    cut: Cut


@dataclass(slots=True)
class PowerCuts:
    """One bookie, started; its disk; what it acknowledged."""

    disk: PowerCutMount
    bookie: BookieOnDisk
    record: Record
    chance: random.Random
    failed_starts: int = 0

    async def load_and_cut(self) -> Cut:
        """The bookie is killed afterwards, as a host without power is, and the disk is on again."""
        async with connected(self.bookie.port) as client:
            load = Load(client, self.record, self.chance)
            try:
                await load.more(self.chance.randrange(1, RUNS_MAX))
                async with asyncio.timeout(CUT_SECONDS_MAX):
                    cut = await self.disk.cut(self.chance.randrange(1, WRITES_MAX), self.chance.getrandbits(32))
            finally:
                self.bookie.kill()
                await load.stop()
        self.disk.again()
        return cut

    async def start_and_cut(self) -> Cut:
        """The same from before the start on: it may not come to that."""
        cutting = asyncio.create_task(self.disk.cut(self.chance.randrange(1, WRITES_OF_START_MAX), self.chance.getrandbits(32)))
        try:
            await asyncio.to_thread(self.bookie.start)
            async with connected(self.bookie.port) as client, Load(client, self.record, self.chance) as load:
                await asyncio.wait([cutting], timeout=CUT_SECONDS_MAX)
                self.bookie.kill()
                await load.stop()
        except BookieDidNotStart:
            self.failed_starts += 1
        async with asyncio.timeout(CUT_SECONDS_MAX):
            cut = await cutting
        self.disk.again()
        return cut

    async def round(self) -> Round:
        """Loss when something acknowledged is not there."""
        cut = await self.load_and_cut()
        if self.chance.random() < CUTS_AT_START:
            await self.start_and_cut()
        self.bookie.start()
        async with connected(self.bookie.port) as client:
            await check(client, self.record)
        return Round(self.record.entry_count, cut)


@contextlib.contextmanager
def power_cuts(directory: Path, uri: str, seed: int, pairs: int = 1) -> Iterator[PowerCuts]:
    with (
        PowerCutMount(DISK_MEGABYTES) as disk,
        BookieOnDisk(directory / "bookie", uri, disk.path, disk.path, pairs=pairs) as bookie,
    ):
        bookie.start()
        yield PowerCuts(disk, bookie, Record(), random.Random(seed))


def run_rounds(cuts: PowerCuts, count: int) -> list[Round]:
    async def rounds() -> list[Round]:
        return [await cuts.round() for _ in range(count)]

    return asyncio.run(rounds())
