"""System calls of a bookie that fail with EIO: nothing is acknowledged that is not on disk, nothing is denied that is."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from bookkeeper.network.network_bookie import NetworkBookie
from tests.bookie.disk_proofs.acknowledged import READ_BYTES_MAX, Load, Record, check, connected, writable_again
from tests.bookie.disk_proofs.bookie_on_disk import BookieOnDisk
from tests.bookie.disk_proofs.mounts import need_power_cuts
from tests.bookie.disk_proofs.power_cuts import PowerCuts, power_cuts
from tests.bookie.disk_proofs.system_call_errors import Injected, need_tracing
from tests.bookie.runs import KEY, sealed
from wire.bookie.codes import BookieCode, BookieError

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

OTHER_LEDGER = 99
FAILED_SYNC = "fdatasync,pwritev2:error=EIO"
"""Also of a write that is durable when it returns. io_uring, which libuv needs, cannot be made to fail for the journal alone:
its answers are those of `tests/ports/disk/test_kernel_queue.py`."""
NO_FLUSH = ("journalIoUring=false", "flushInterval=600000", "dbStorage_writeCacheMaxSizeMb=64", "journalMaxSizeMB=64")
"""Settings under which the fsync that fails is the journal's."""


async def code_of_add(bookie: NetworkBookie) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await bookie.add(sealed(OTHER_LEDGER, 0), KEY)
    return caught.value.code


def need_direct_io(directory: Path) -> None:
    """Entry logs are written with pwrite64 then, and the journal never is."""
    try:
        os.close(os.open(directory / "probe", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"needs O_DIRECT to tell writes of entry logs from those of the journal: {error}")


def bookie_in(tmp_path: Path, uri: str, *settings: str) -> BookieOnDisk:
    return BookieOnDisk(tmp_path / "bookie", uri, tmp_path, tmp_path, *settings)


def test_after_an_fsync_that_failed_nothing_is_acknowledged(tmp_path: Path, metadata_service_uri: str) -> None:
    need_tracing()

    async def scenario(bookie: BookieOnDisk) -> None:
        record = Record()
        async with connected(bookie.port) as client:
            async with Load(client, record, random.Random(1)) as load:
                await load.more(100)
                with Injected(bookie.pid, FAILED_SYNC, tmp_path / "calls"):
                    assert await load.refused() is BookieCode.EREADONLY
                    refused_at = len(record.acknowledged)
                    assert await code_of_add(client) is BookieCode.EREADONLY
            assert await code_of_add(client) is BookieCode.EREADONLY  # though an fsync would now claim success
            assert len(record.acknowledged) == refused_at
            await check(client, record)
        assert "journal write failed" in bookie.log.read_text()
        bookie.kill()
        bookie.start()
        async with connected(bookie.port) as client:
            await check(client, record)
            await client.add(sealed(OTHER_LEDGER, 0), KEY)

    with bookie_in(tmp_path, metadata_service_uri, *NO_FLUSH) as bookie:
        asyncio.run(scenario(bookie.start()))


def test_a_bookie_that_may_not_be_read_only_ends_when_an_fsync_fails(tmp_path: Path, metadata_service_uri: str) -> None:
    need_tracing()

    async def scenario(bookie: BookieOnDisk) -> None:
        record = Record()
        async with connected(bookie.port) as client, Load(client, record, random.Random(2)) as load:
            await load.more(100)
            with Injected(bookie.pid, FAILED_SYNC, tmp_path / "calls"):
                await load.refused()
                assert bookie.end() == 1
        assert "readOnlyModeEnabled=false: the bookie has to end" in bookie.log.read_text()
        bookie.start()
        async with connected(bookie.port) as client:
            await check(client, record)

    with bookie_in(tmp_path, metadata_service_uri, *NO_FLUSH, "readOnlyModeEnabled=false") as bookie:
        asyncio.run(scenario(bookie.start()))


def test_entry_logs_that_cannot_be_written_stop_adds_until_they_can(tmp_path: Path, metadata_service_uri: str) -> None:
    need_tracing()
    need_direct_io(tmp_path)

    async def scenario(bookie: BookieOnDisk) -> None:
        record, chance = Record(), random.Random(3)
        async with connected(bookie.port) as client:
            async with Load(client, record, chance) as load:
                await load.more(100)
                with Injected(bookie.pid, "pwrite64:error=EIO", tmp_path / "calls"):
                    assert await load.refused() is BookieCode.EREADONLY
                    await check(client, record)
            await writable_again(client, record)
            async with Load(client, record, chance) as load:
                await load.more(100)
        assert "storage" in bookie.log.read_text()
        bookie.kill()
        bookie.start()
        async with connected(bookie.port) as client:
            await check(client, record)

    with bookie_in(tmp_path, metadata_service_uri) as bookie:
        asyncio.run(scenario(bookie.start()))


def test_an_unreadable_entry_is_never_reported_as_absent(tmp_path: Path, metadata_service_uri: str) -> None:
    need_tracing()

    async def scenario(bookie: BookieOnDisk) -> None:
        record = Record()
        async with connected(bookie.port) as client, Load(client, record, random.Random(4)) as load:
            await load.more(200)
        assert bookie.stop() == 0  # all of it is in entry logs
        bookie.start()
        async with connected(bookie.port) as client:
            with Injected(bookie.pid, "pread64,preadv,preadv2:error=EIO", tmp_path / "calls"):
                assert {await code_of_read(client, record, index) for index in range(50)} == {BookieCode.EIO}
            await check(client, record)

    with bookie_in(tmp_path, metadata_service_uri) as bookie:
        asyncio.run(scenario(bookie.start()))


async def code_of_read(bookie: NetworkBookie, record: Record, index: int) -> BookieCode:
    sent = record.acknowledged[index]
    with pytest.raises(BookieError) as caught:
        await bookie.read(sent.ledger_id, sent.first_entry_id, 1, READ_BYTES_MAX)
    return caught.value.code


def test_a_disk_that_takes_no_writes_any_more_costs_nothing_acknowledged(tmp_path: Path, metadata_service_uri: str) -> None:
    """The error comes from the device, so the file system has it too, and what was in its cache is gone after the restart."""
    need_power_cuts()

    async def scenario(cuts: PowerCuts) -> None:
        async with connected(cuts.bookie.port) as client:
            async with Load(client, cuts.record, cuts.chance) as load:
                await load.more(200)
                cuts.disk.refuse("writes")
                assert await load.refused() is BookieCode.EREADONLY
            assert await code_of_add(client) is BookieCode.EREADONLY
        cuts.bookie.kill()
        cuts.disk.again()
        cuts.bookie.start()
        async with connected(cuts.bookie.port) as client:
            await check(client, cuts.record)

    with power_cuts(tmp_path, metadata_service_uri, seed=5) as cuts:
        asyncio.run(scenario(cuts))
