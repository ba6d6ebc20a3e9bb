"""The program that test_kill_nine kills: adds to a bookie on a real disk, and prints each entry id once it is acknowledged."""

import asyncio
import os
import sys

from bookie.bookie import Bookie
from bookie.settings import BookieSettings
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.runs import KEY, sealed

COUNT = 3
SIZE = 3000


async def main(path: str) -> None:
    disk = RealDisk()
    settings = BookieSettings(
        (f"{path}/journal",),
        (f"{path}/ledgers",),
        journal_max_size_mb=1,
        journal_pre_alloc_size_mb=1,
        db_storage_write_cache_max_size_mb=1,
    )
    bookie = Bookie(disk, settings, RealClock(), RealRng())
    await bookie.start()
    first = max(-1, await bookie.last_entry_id(1)) + 1 if bookie.ledger_ids() else 0
    window = asyncio.Semaphore(8)
    while True:
        await window.acquire()
        future = bookie.add(sealed(1, first, COUNT, SIZE), KEY)
        future.add_done_callback(lambda done, first=first: acknowledged(done, first, window))  # type: ignore[misc]
        first += COUNT


def acknowledged(done: "asyncio.Future[None]", first: int, window: asyncio.Semaphore) -> None:
    done.result()
    window.release()
    os.write(1, f"{first}\n".encode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
