"""File systems that are full under load: read-only, nothing acknowledged lost, and writable again when there is room."""

import asyncio
import os
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bookie.disk_proofs.acknowledged import Load, Record, check, connected, writable_again
from tests.bookie.disk_proofs.bookie_on_disk import BookieOnDisk
from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts
from wire.bookie.codes import BookieCode

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

LEFT_BYTES = 100_000


class Way(NamedTuple):
    """Way in which a bookie learns that there is no room."""

    megabytes: int
    """Size of each file system: where the threshold must be reported first, the room beyond it takes the load for a while."""
    settings: tuple[str, ...]
    left: float
    """Share of the file system that is free when it is full."""
    told: str


THRESHOLD = Way(400, (), 0.049, "disk full: over 95%")
NO_SPACE = Way(
    48,
    ("diskUsageThreshold=1.0", "diskUsageLwmThreshold=1.0", "diskUsageWarnThreshold=1.0", "diskCheckInterval=1000"),
    0.002,
    "No space left on device",
)


def fill(path: Path, left: float) -> Path:
    """A file that leaves so much room."""
    found = os.statvfs(path)
    ballast = path / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_frsize * (found.f_bavail - int(found.f_blocks * left)))
    return ballast


@pytest.mark.parametrize("full_in", ["journal", "ledgers", "both on one"])
@pytest.mark.parametrize("way", [THRESHOLD, NO_SPACE], ids=["threshold", "no space"])
def test_a_full_disk_loses_nothing_and_room_makes_it_writable(
    tmp_path: Path, metadata_service_uri: str, full_in: str, way: Way
) -> None:
    need_loop_mounts()
    with LoopMount(way.megabytes) as journal, LoopMount(way.megabytes) as ledgers:
        full = ledgers.path if full_in == "ledgers" else journal.path
        of_ledgers = journal.path if full_in == "both on one" else ledgers.path
        with BookieOnDisk(tmp_path / "bookie", metadata_service_uri, journal.path, of_ledgers, *way.settings) as bookie:
            asyncio.run(fill_under_load(bookie.start(), full, way.left))
            log = bookie.log.read_text()
            assert way.told in log, log
            assert "bookie has recovered" in log


async def fill_under_load(bookie: BookieOnDisk, full: Path, left: float) -> None:
    record, chance = Record(), random.Random(7)
    async with connected(bookie.port) as client:
        async with Load(client, record, chance) as load:
            await load.more(200)
            ballast = fill(full, left)
            assert await load.refused() is BookieCode.EREADONLY
        await check(client, record)
        ballast.unlink()
        await writable_again(client, record)
        async with Load(client, record, chance) as load:
            await load.more(200)
    bookie.kill()
    bookie.start()
    async with connected(bookie.port) as client:
        await check(client, record)
