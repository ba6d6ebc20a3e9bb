"""Disks that fail or are full: read-only, nothing lost, and back when there is room."""

import asyncio
import dataclasses
import errno
from contextlib import suppress

import pytest

from bookie.bookie import Bookie
from bookie.disk_space.disk_watch import fitted
from bookie.journal.files import file_name
from bookie.settings import BookieSettings
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

OTHER_KEY = b"\x02" * 20


async def refused(awaitable: object) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_failing_journal_makes_the_bookie_read_only_and_reads_go_on(kind: str) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        first = sealed(1, 0)
        await bookie.add(first, KEY)
        machine.disk.fail(kind, errno.EIO, ".journal")
        pending = [bookie.add(sealed(1, entry_id), KEY) for entry_id in (1, 2)]
        assert [await refused(future) for future in pending] == [BookieCode.EREADONLY] * 2
        assert await refused(bookie.add(sealed(1, 3), KEY)) is BookieCode.EREADONLY
        assert await refused(bookie.fence(1, KEY)) is BookieCode.EREADONLY
        assert entries_of(await bookie.read(1, 0, 1, 100)) == entries_of(first)
        assert "journal" in bookie.read_only_reason
        await asyncio.sleep(60)
        assert bookie.read_only_reason
        await bookie.stop()
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert entries_of(await bookie.read(1, 0, 1, 100)) == entries_of(first)
        await bookie.add(sealed(2, 0), KEY)  # ledger 1 may be fenced or not: its fence was neither answered nor taken back

    on_machine(scenario)


def test_a_failing_flush_is_tried_again_and_nothing_is_lost() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        runs = [sealed(1, entry_id, 1, 50_000) for entry_id in range(5)]
        await asyncio.gather(*[bookie.add(run, KEY) for run in runs])
        machine.disk.fail("sync", errno.EIO, ".log", times=2)
        with pytest.raises(OSError, match="Input/output error"):
            await bookie.flush()
        assert "storage" in bookie.read_only_reason
        assert await refused(bookie.add(sealed(1, 5), KEY)) is BookieCode.EREADONLY
        assert entries_of(await bookie.read(1, 4, 1, 100)) == entries_of(runs[4])
        await asyncio.sleep(10)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(1, 5), KEY)
        for _ in range(2):
            machine.crash(power_cut=True)
            bookie = await machine.start()
            for run in runs:
                assert entries_of(await bookie.read(1, run.first_entry_id, 1, 100)) == entries_of(run)
            await bookie.flush()

    on_machine(scenario)


@pytest.mark.parametrize("part", [".log", ".index", ".ledgers", "checkpoint"])
@pytest.mark.parametrize("kind", ["write", "sync", "name"])
def test_the_flush_after_a_failed_one_makes_up_for_it(part: str, kind: str) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        await bookie.flush()
        runs = [sealed(ledger_id, 1, 1, 1000) for ledger_id in (1, 2)]
        await asyncio.gather(*[bookie.add(run, KEY) for run in runs])
        await bookie.fence(2, KEY)
        machine.disk.fail(kind, errno.ENOSPC, part)
        try:
            await bookie.flush()
        except OSError:
            await asyncio.sleep(5)
            await bookie.flush()
        machine.disk.heal()
        for _ in range(2):
            machine.crash(power_cut=True)
            bookie = await machine.start()
            for run in runs:
                assert entries_of(await bookie.read(run.ledger_id, 1, 1, 100)) == entries_of(run)
            assert await refused(bookie.add(sealed(2, 2), KEY)) is BookieCode.EFENCED

    on_machine(scenario)


def test_a_full_disk_makes_it_read_only_until_there_is_room_again() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 400_000), KEY)
        await bookie.flush()
        machine.disk.capacity_bytes = 2 * sum(machine.disk.contents(path).allocated_bytes for path in machine.disk.paths())
        machine.disk.capacity_bytes = machine.disk.capacity_bytes * 100 // 195
        await asyncio.sleep(15)
        assert "disk full" in bookie.read_only_reason
        assert await refused(bookie.add(sealed(1, 1), KEY)) is BookieCode.EREADONLY
        assert (await bookie.read(1, 0, 1, 1)).count == 1
        machine.disk.heal()
        await asyncio.sleep(15)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(1, 1), KEY)

    on_machine(scenario)


def test_no_space_in_the_journal_is_got_over_without_a_restart() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        machine.disk.fail("write", errno.ENOSPC, ".journal")
        assert await refused(bookie.add(sealed(1, 1), KEY)) is BookieCode.EREADONLY
        await asyncio.sleep(15)
        await bookie.add(sealed(1, 1), KEY)
        await bookie.add(sealed(1, 2), KEY)
        machine.crash(power_cut=True)
        assert await (await machine.start()).last_entry_id(1) == 2

    on_machine(scenario)


def test_a_full_disk_does_not_keep_it_from_starting_and_it_recovers() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        runs = [sealed(1, entry_id, 1, 50_000) for entry_id in range(30)]
        machine.disk.fail("write", errno.ENOSPC, ".log", times=1000)
        futures = [bookie.add(run, KEY) for run in runs]
        await asyncio.sleep(0.5)
        acknowledged = [run for run, future in zip(runs, futures, strict=True) if future.done() and not future.exception()]
        assert len(acknowledged) > 15
        machine.crash(power_cut=True)
        first = 1 + len([path for path in machine.disk.paths() if path.endswith(".journal")])
        for file_id in range(first, first + 10):
            machine.disk.fail("write", errno.ENOSPC, file_name(file_id), times=3)
        bookie = await machine.start()
        assert "journal" in bookie.read_only_reason
        for run in acknowledged:
            assert entries_of(await bookie.read(1, run.first_entry_id, 1, 1)) == entries_of(run)
        await asyncio.sleep(60)
        assert "journal" not in bookie.read_only_reason
        assert "storage" in bookie.read_only_reason
        machine.disk.heal()
        await asyncio.sleep(60)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(1, 30), KEY)
        await bookie.stop()
        machine.crash(power_cut=True)
        assert await (await machine.start()).last_entry_id(1) == 30

    on_machine(scenario)


def test_a_bookie_whose_storage_failed_stops_at_once_and_loses_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        run = sealed(1, 0)
        await bookie.add(run, KEY)
        machine.disk.fail("write", errno.ENOSPC, ".log", times=1000)
        await asyncio.sleep(SMALL.flush_interval / 1000 + 5)
        assert "storage" in bookie.read_only_reason
        before = machine.loop.time()
        await bookie.stop()
        assert machine.loop.time() - before < 0.5
        machine.disk.heal()
        machine.crash(power_cut=True)
        assert entries_of(await (await machine.start()).read(1, 0, 1, 1)) == entries_of(run)

    on_machine(scenario)


def test_a_stopped_bookie_refuses_and_a_clean_start_replays_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        pending = bookie.add(sealed(1, 0), KEY)
        await bookie.stop()
        await bookie.stop()
        assert pending.done()
        assert pending.exception() is None
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert not bookie._flusher.active
        assert await bookie.last_entry_id(1) == 0

    on_machine(scenario)


def fill_up(machine: Machine) -> None:
    """96% of the disk is used."""
    used = sum(machine.disk.contents(path).allocated_bytes for path in machine.disk.paths())
    machine.disk.capacity_bytes = used * 100 // 96


DEFAULTS = BookieSettings(("/data/journal",), ("/data/ledgers",))
SMALL_DISK_BYTES = 60 << 20


async def fill(machine: Machine, left_bytes: int) -> None:
    """Somebody else's file takes the room."""
    file = await machine.disk.open("/data/filler", create=True)
    while machine.disk.free_bytes() > left_bytes:
        with suppress(OSError):  # a flush was faster
            await file.allocate(file.size() + machine.disk.free_bytes() - left_bytes)
    await file.sync()
    await machine.disk.sync_directory("/data")


async def publish_until_refused(bookie: Bookie, ledger_id: int = 1) -> int:
    """Number of entries of 4 KB that were taken, a hundred at a time."""
    count = 0
    for first in range(0, 100_000, 100):
        adds = [bookie.add(sealed(ledger_id, entry_id, 1, 4096), KEY) for entry_id in range(first, first + 100)]
        answers = await asyncio.gather(*adds, return_exceptions=True)
        count += sum(answer is None for answer in answers)
        if count < first + 100:
            return count
    raise AssertionError("never refused")


def test_a_disk_that_is_filled_between_two_looks_is_never_overfilled(caplog: pytest.LogCaptureFixture) -> None:
    """Added bytes are counted: the disk is not asked."""

    async def scenario(machine: Machine) -> None:
        machine.disk.capacity_bytes = SMALL_DISK_BYTES
        bookie = await machine.start()
        count = await publish_until_refused(bookie)
        assert count * 4096 > SMALL_DISK_BYTES // 3
        assert machine.loop.time() < DEFAULTS.disk_check_interval / 1000, "the disk was looked at meanwhile"
        assert "over 95%: /data/journal" in caplog.text, "since then a flush may have made room"
        await bookie.flush()
        assert machine.disk.free_bytes() > SMALL_DISK_BYTES // 50, "what was taken has its place in an entry log"
        assert await bookie.last_entry_id(1) == count - 1

    on_machine(scenario, settings=DEFAULTS)


def test_publishing_is_to_end_before_the_bookie_takes_nothing_more() -> None:
    async def scenario(machine: Machine) -> None:
        machine.disk.capacity_bytes = SMALL_DISK_BYTES
        bookie = await machine.start()
        entry_id = 0
        while not bookie.health.publish_refusal:
            await bookie.add(sealed(1, entry_id, 1, 4096), KEY)
            entry_id += 1
        assert bookie.health.publish_refusal.startswith("disk full: nearly over 95%")
        assert bookie.read_only_reason == ""
        for cursor in range(100):
            await bookie.add(sealed(2, cursor), KEY)
        await bookie.delete([1])
        await asyncio.sleep(3)
        assert bookie.health.publish_refusal == "", "there is room again"

    on_machine(scenario, settings=DEFAULTS)


def test_deleting_makes_room_where_nothing_can_be_written() -> None:
    async def scenario(machine: Machine) -> None:
        machine.disk.capacity_bytes = SMALL_DISK_BYTES
        bookie = await machine.start()
        await publish_until_refused(bookie)
        await fill(machine, 0)
        await bookie.delete([1])
        await asyncio.sleep(5)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(2, 0), KEY)

    on_machine(scenario, settings=DEFAULTS)


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_bookie_started_on_a_full_disk_lets_ledgers_be_recovered_and_is_back_within_seconds(power_cut: bool) -> None:
    async def scenario(machine: Machine) -> None:
        machine.disk.capacity_bytes = SMALL_DISK_BYTES
        bookie = await machine.start()
        count = await publish_until_refused(bookie)
        await fill(machine, 0)
        machine.crash(power_cut=power_cut)
        bookie = await machine.start()
        assert "disk full" in bookie.read_only_reason
        await bookie.fence(1, KEY)
        again = await bookie.read(1, count - 1, 1, 1 << 20)
        await bookie.add(again, KEY, recovery=True)
        assert await refused(bookie.add(sealed(1, count, 1, 4096), KEY, recovery=True)) is BookieCode.EREADONLY
        assert await refused(bookie.add(sealed(2, 0), KEY)) is BookieCode.EREADONLY
        await machine.disk.remove("/data/filler")
        await bookie.delete([1])
        await asyncio.sleep(3)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(2, 0), KEY)
        machine.crash(power_cut=True)
        assert await (await machine.start()).last_entry_id(2) == 0

    on_machine(scenario, settings=DEFAULTS)


def test_a_journal_without_room_says_so_once_and_leaves_no_empty_files(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        machine.disk.fail("write", errno.ENOSPC, ".journal", times=100_000)
        for entry_id in range(20):
            assert await refused(bookie.add(sealed(1, entry_id), KEY)) is BookieCode.EREADONLY
            await asyncio.sleep(1)
        said = [record.message for record in caplog.records if "journal file not prepared" in record.message]
        assert len(said) == 1
        assert "make room on the disk of /data/journal" in said[0]
        assert len([path for path in machine.disk.paths() if path.endswith(".journal")]) <= 2
        machine.disk.heal()
        await asyncio.sleep(3)
        await bookie.add(sealed(1, 0), KEY)

    on_machine(scenario)


def test_settings_are_made_to_fit_a_small_disk_and_stay_on_a_large_one() -> None:
    small = fitted(DEFAULTS, SMALL_DISK_BYTES, SMALL_DISK_BYTES)
    assert (small.journal_max_size_mb, small.journal_pre_alloc_size_mb) == (3, 1)
    assert small.log_size_limit == SMALL_DISK_BYTES // 16
    assert small.high_priority_bytes_min < 0.03 * SMALL_DISK_BYTES
    large = fitted(DEFAULTS, 1 << 40, 1 << 40)
    assert large == dataclasses.replace(DEFAULTS, min_usable_size_for_high_priority_writes=DEFAULTS.high_priority_bytes_min)


@pytest.mark.parametrize(("bytes_min", "is_taken"), [(1, True), (1 << 40, False)])
def test_on_a_full_disk_a_recovery_may_still_close_its_ledger(bytes_min: int, is_taken: bool) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 400_000), KEY)
        await bookie.fence(1, KEY)
        fill_up(machine)
        await asyncio.sleep(15)
        add = bookie.add(sealed(1, 0), KEY, recovery=True)
        if is_taken:
            await add
        else:
            assert await refused(add) is BookieCode.EREADONLY
        assert await refused(bookie.add(sealed(2, 0), KEY)) is BookieCode.EREADONLY
        machine.disk.heal()

    settings = dataclasses.replace(SMALL, min_usable_size_for_high_priority_writes=bytes_min)
    on_machine(scenario, settings=settings)


def test_a_bookie_that_may_not_be_read_only_says_that_it_has_to_end() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 400_000), KEY)
        assert not bookie.health.must_end.is_set()
        fill_up(machine)
        await bookie.health.must_end.wait()
        machine.disk.heal()

    on_machine(scenario, settings=dataclasses.replace(SMALL, read_only_mode_enabled=False))


def test_a_bookie_that_is_forced_to_be_read_only_is_read() -> None:
    async def scenario(machine: Machine) -> None:
        await (await machine.start()).add(sealed(1, 0), KEY)
        machine.crash(power_cut=True)
        machine.settings = dataclasses.replace(SMALL, force_read_only_bookie=True)
        bookie = await machine.start()
        assert await refused(bookie.add(sealed(1, 1), KEY, recovery=True)) is BookieCode.EREADONLY
        assert (await bookie.read(1, 0, 1, 1)).count == 1

    on_machine(scenario)
