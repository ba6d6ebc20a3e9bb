"""A flush of many ledgers leaves the loop to others again and again."""

import asyncio
from collections.abc import Sequence

import pytest

from bookie.storage.log_file import LogFile
from bookie.storage.log_writer import LogWriter
from bookie.storage.span import Span
from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop
from simulation.world.rng import stream
from simulation.world.trace import Trace
from tests.bookie.runs import sealed
from wire.run import EntryRun

LEDGERS, BLOCKS_MAX = 200, 32


class Turns:
    """Counts the blocks that are appended between two turns of another task."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.blocks = self.blocks_max = self.blocks_in_all = 0
        self.is_over = False

    def turn(self) -> None:
        self.blocks = 0
        if not self.is_over:
            self._loop.call_soon(self.turn)

    def appended(self) -> None:
        self.blocks += 1
        self.blocks_in_all += 1
        self.blocks_max = max(self.blocks_max, self.blocks)


def test_no_turn_of_the_loop_encodes_more_than_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = SimLoop(stream(1, "loop"), Trace(None))
    disk, turns, append = SimDisk(loop, stream(1, "disk")), Turns(loop), LogFile.append

    async def counted(log: LogFile, runs: Sequence[EntryRun]) -> Span:
        turns.appended()
        return await append(log, runs)

    async def scenario() -> None:
        await disk.make_directories("/logs")
        writer = LogWriter(disk, "/logs", 1 << 30, direct=False)
        turns.turn()
        extents, spans = await writer.write((ledger_id, [sealed(ledger_id, 0)]) for ledger_id in range(LEDGERS))
        turns.is_over = True
        assert (len(extents), len(spans)) == (1, LEDGERS)
        await writer.close()

    monkeypatch.setattr(LogFile, "append", counted)
    try:
        loop.run_until_complete(asyncio.wait_for(scenario(), 60))
    finally:
        loop.finish()
    assert turns.blocks_in_all == LEDGERS
    assert turns.blocks_max <= BLOCKS_MAX
