"""Power cuts of a real bookie on a real file system: everything that it acknowledged is there afterwards."""

import asyncio
from pathlib import Path

import pytest

from tests.bookie.disk_proofs.acknowledged import Loss, check, connected
from tests.bookie.disk_proofs.mounts import NotMountable, need_power_cuts
from tests.bookie.disk_proofs.power_cuts import power_cuts, run_rounds
from tests.clients.bookie_process import BookieDidNotStart

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
ROUNDS = 3
LYING_ROUNDS_MAX = 10
"""One power cut may by chance find all acknowledged entries on a disk that ignores flushes."""


def test_acknowledged_entries_survive_power_cuts(tmp_path: Path, metadata_service_uri: str) -> None:
    need_power_cuts()
    with power_cuts(tmp_path, metadata_service_uri, seed=1) as cuts:
        rounds = run_rounds(cuts, ROUNDS)
    assert rounds[-1].acknowledged > 0


def test_on_a_disk_that_ignores_flushes_the_same_finds_a_loss(tmp_path: Path, metadata_service_uri: str) -> None:
    need_power_cuts()

    async def scenario() -> None:
        with power_cuts(tmp_path, metadata_service_uri, seed=1) as cuts:
            for _ in range(LYING_ROUNDS_MAX):
                cuts.disk.ignore_flushes()
                await cuts.load_and_cut()
                cuts.bookie.start()
                async with connected(cuts.bookie.port) as client:
                    await check(client, cuts.record)

    # such a disk may lose the file system with the entries, or what a bookie needs to start
    with pytest.raises((Loss, NotMountable, BookieDidNotStart)):
        asyncio.run(scenario())
