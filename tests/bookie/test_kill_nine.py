"""A real process on a real disk, killed while it writes: everything that it said was acknowledged is there."""

import asyncio
import subprocess
import sys
from pathlib import Path

from bookie.bookie import Bookie
from bookie.settings import BookieSettings
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie import kill_nine_child
from tests.bookie.kill_nine_child import COUNT, SIZE
from tests.bookie.runs import entries_of, sealed

ROOT = Path(__file__).parents[2]
ACKNOWLEDGED_BEFORE_KILL = 300
ROUNDS = 3


def write_until_killed(path: Path) -> list[int]:
    """First entry ids of the runs that were acknowledged."""
    command = [sys.executable, "-m", kill_nine_child.__name__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        try:
            lines = [child.stdout.readline() for _ in range(ACKNOWLEDGED_BEFORE_KILL)]
        finally:
            child.kill()
        rest = child.stdout.read().splitlines(keepends=True)
    return [int(text) for text in (*lines, *rest) if text.endswith(b"\n")]


async def check(path: Path, acknowledged: list[int]) -> None:
    disk = RealDisk()
    bookie = Bookie(disk, BookieSettings((f"{path}/journal",), (f"{path}/ledgers",)), RealClock(), RealRng())
    try:
        await bookie.start()
        for first in acknowledged:
            found: dict[int, bytes] = {}
            while len(found) < COUNT:
                found.update(entries_of(await bookie.read(1, first + len(found), COUNT - len(found), 1 << 20)))
            assert found == entries_of(sealed(1, first, COUNT, SIZE))
        await bookie.stop()
    finally:
        disk.close()


def test_kill_nine_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    for _ in range(ROUNDS):
        acknowledged += write_until_killed(tmp_path)
        assert acknowledged == sorted(set(acknowledged))
        asyncio.run(check(tmp_path, acknowledged))
    assert len(acknowledged) >= ROUNDS * ACKNOWLEDGED_BEFORE_KILL
