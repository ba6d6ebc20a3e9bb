"""Compaction gives room back and changes nothing that can be read, wherever it is cut off."""

import asyncio
import dataclasses
import errno

import pytest

from bookie.bookie import Bookie
from bookie.storage.block_v1 import LOG_ALIGNMENT
from bookie.storage.span import Span
from simulation.disks.file import SimFile
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from tests.bookie.upkeep.mixed_logs import ROUNDS, SIZE, UNTHROTTLED, logs, mixed_logs
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun


def log_bytes(machine: Machine) -> int:
    return sum(machine.disk.contents(path).size for path in logs(machine))


async def check(bookie: Bookie, ledger_ids: tuple[int, ...], rounds: int = ROUNDS, fill: int = 0) -> None:
    for ledger_id in ledger_ids:
        for entry_id in range(rounds):
            found = entries_of(await bookie.read(ledger_id, entry_id, 1, 1))
            assert found == entries_of(sealed(ledger_id, entry_id, 1, SIZE, fill)), (ledger_id, entry_id)
        with pytest.raises(BookieError) as caught:
            await bookie.read(ledger_id, rounds, 1, 1)
        assert caught.value.code is BookieCode.ENOENTRY


async def restarts(machine: Machine, ledger_ids: tuple[int, ...]) -> None:
    for power_cut in (False, True):
        machine.crash(power_cut=power_cut)
        bookie = await machine.start()
        await check(bookie, ledger_ids)
        assert bookie.ledger_ids() == list(ledger_ids)


def test_compaction_gives_back_dead_space_and_keeps_live_entries() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        before = log_bytes(machine)
        assert await bookie.compactor.run("major") >= 1
        assert log_bytes(machine) < before * 6 // 10  # the log that is written now is left as it is
        await check(bookie, (4,))
        await restarts(machine, (4,))

    on_machine(scenario, settings=UNTHROTTLED)


def test_a_log_that_was_just_compacted_is_left_alone() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(18):
            await bookie.add(sealed(2, entry_id, 1, SIZE), KEY)
        await bookie.add(sealed(1, 0, 1, 10), KEY)
        await bookie.flush()
        await bookie.add(sealed(3, 0, 1, SIZE), KEY)
        await bookie.flush()
        await bookie.delete([2])
        assert await bookie.compactor.run("major") == 1
        assert await bookie.compactor.run("major") == 0
        assert entries_of(await bookie.read(1, 0, 1, 1)) == entries_of(sealed(1, 0, 1, 10))

    on_machine(scenario, settings=UNTHROTTLED)


def test_blocks_of_several_flushes_become_one() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])
        await bookie.compactor.run("major")
        run = await bookie.read(3, 0, 10, 1 << 20)
        assert run.count > 1
        await restarts(machine, (3, 4))

    on_machine(scenario, settings=UNTHROTTLED)


@pytest.mark.parametrize("power_cut", [True, False])
def test_a_crash_at_each_call_of_the_disk_in_a_compaction_loses_nothing(power_cut: bool) -> None:
    async def life(machine: Machine) -> int:
        """Ends compacted, with an overwritten entry and a deleted ledger; how many calls the compaction took."""
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        before = machine.disk.steps
        await bookie.compactor.run("major")
        return machine.disk.steps - before

    steps: int = on_machine(life, settings=UNTHROTTLED)
    assert steps > 15

    async def scenario(machine: Machine, at: int) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        cut = machine.loop.create_future()
        begin = machine.disk.steps

        def on_step(step: int) -> None:
            if step == begin + at:
                machine.loop.call_soon(cut.set_result, None)

        machine.disk.on_step = on_step
        compaction = machine.loop.create_task(bookie.compactor.run("major"))
        await asyncio.wait([compaction, cut], return_when=asyncio.FIRST_COMPLETED)
        compaction.cancel()
        machine.crash(power_cut=power_cut)
        machine.disk.on_step = lambda step: None
        bookie = await machine.start()
        await check(bookie, (4,))
        assert await bookie.compactor.run("major") >= 0
        await check(bookie, (4,))
        await restarts(machine, (4,))

    for at in range(1, steps + 1):
        on_machine(lambda machine, at=at: scenario(machine, at), seed=at, settings=UNTHROTTLED)  # type: ignore[misc]


@pytest.mark.parametrize("turns", range(0, 40, 2))
def test_an_entry_written_again_during_a_compaction_overrules_its_copy(turns: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])
        compaction = machine.loop.create_task(bookie.compactor.run("major"))
        await asyncio.sleep(turns * 0.0003)
        newer = sealed(3, 2, 1, SIZE, fill=100)
        await bookie.add(newer, KEY, recovery=True)
        await bookie.flush()
        await compaction
        for number in range(3):
            assert entries_of(await bookie.read(3, 2, 1, 1)) == entries_of(newer)
            for entry_id in {*range(ROUNDS)} - {2}:
                assert entries_of(await bookie.read(3, entry_id, 1, 1)) == entries_of(sealed(3, entry_id, 1, SIZE))
            await check(bookie, (4,))
            machine.crash(power_cut=True)
            if number == 1:  # the logs alone say the same as their indexes
                for path in machine.disk.paths():
                    if path.endswith(".index"):
                        await machine.disk.remove(path)
            bookie = await machine.start()

    on_machine(scenario, seed=turns, settings=UNTHROTTLED)


@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_a_ledger_deleted_during_a_compaction_does_not_come_back(turns: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])
        compaction = machine.loop.create_task(bookie.compactor.run("major"))
        await asyncio.sleep(turns * 0.0003)
        await bookie.delete([3])
        await compaction
        await check(bookie, (4,))
        assert bookie.ledger_ids() == [4]
        await restarts(machine, (4,))

    on_machine(scenario, seed=turns, settings=UNTHROTTLED)


@pytest.mark.parametrize("seed", range(8))
def test_reads_go_on_while_their_logs_are_compacted(seed: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])

        async def read_on() -> None:
            while True:
                await check(bookie, (3, 4))

        readers = [machine.loop.create_task(read_on()) for _ in range(3)]
        await bookie.compactor.run("major")
        await asyncio.sleep(0.05)
        assert not any(reader.done() for reader in readers)
        for reader in readers:
            reader.cancel()

    on_machine(scenario, seed=seed, settings=dataclasses.replace(UNTHROTTLED, open_file_limit=2))


def test_a_damaged_block_is_not_copied_under_a_right_checksum() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        (first, *_) = logs(machine)
        machine.disk.contents(first).flip_bit(LOG_ALIGNMENT + 3 * SIZE + SIZE // 2 + 300, 3)
        before = machine.disk.contents(first).size
        await bookie.compactor.run("major")
        assert bookie.compactor.counts.failures == 1
        assert machine.disk.contents(first).size == before
        assert bookie._storage.uses()[0].log_id != 1
        for entry_id in range(1, ROUNDS):
            assert (await bookie.read(4, entry_id, 1, 1)).count == 1

    on_machine(scenario, settings=UNTHROTTLED)


def test_a_log_that_could_not_be_read_is_never_dropped_for_being_empty() -> None:
    """Were it, the next start would answer "no such entry" for what it holds (apache/bookkeeper#2908)."""

    async def scenario(machine: Machine) -> None:
        await mixed_logs(machine)
        machine.crash(power_cut=True)
        (first, *_) = logs(machine)
        await machine.disk.remove(first)
        await machine.disk.remove(first.replace(".log", ".index"))
        for _ in range(2):
            bookie = await machine.start()
            with pytest.raises(BookieError) as caught:
                await bookie.read(4, 99, 1, 1)
            assert caught.value.code is BookieCode.EIO
            if 1 in bookie.ledger_ids():
                await bookie.delete([1])
            await bookie.compactor.run("major")
            machine.crash(power_cut=True)

    on_machine(scenario, settings=UNTHROTTLED)


@pytest.mark.parametrize("part", [".log", ".index", "checkpoint"])
@pytest.mark.parametrize("kind", ["write", "sync", "name"])
def test_a_compaction_that_fails_changes_nothing_and_the_next_one_succeeds(part: str, kind: str) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        machine.disk.fail(kind, errno.ENOSPC, part)
        await bookie.compactor.run("major")
        machine.disk.heal()
        await check(bookie, (4,))
        await bookie.compactor.run("major")
        await bookie.add(sealed(5, 0), KEY)
        await bookie.flush()
        await check(bookie, (4,))
        machine.crash(power_cut=True)
        await check(await machine.start(), (4,))

    on_machine(scenario, settings=UNTHROTTLED)


def test_compaction_is_throttled() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        before = machine.loop.time()
        await bookie.compactor.run("major")
        copied = bookie.compactor.counts.bytes_copied
        assert copied > SIZE
        assert copied / 10_000 <= machine.loop.time() - before < copied / 10_000 + 3

    on_machine(scenario, settings=dataclasses.replace(SMALL, compaction_rate_by_bytes=10_000))


def test_a_ledger_that_is_deleted_while_a_block_of_it_is_read_does_not_end_the_compaction() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in (1, 2):  # a log of its own for each, and one entry of each in a third
            for entry_id in range(14):
                await bookie.add(sealed(ledger_id, entry_id, 1, SIZE), KEY)
            await bookie.add(sealed(3, ledger_id, 1, SIZE), KEY)
            await bookie.add(sealed(4, ledger_id, 1, SIZE), KEY)
            await bookie.flush()
        await bookie.add(sealed(5, 0, 1, SIZE), KEY)
        await bookie.flush()
        await bookie.delete([1, 2])
        read = bookie._storage.read_checked

        async def deleting(ledger_id: int, span: Span) -> EntryRun:
            if ledger_id == 3:
                await bookie.delete([3])
                raise FileNotFoundError(errno.ENOENT, "as when all of its log was dead")
            return await read(ledger_id, span)

        bookie._storage.read_checked = deleting  # type: ignore[method-assign]
        assert await bookie.compactor.run("major") > 0
        assert bookie.compactor.counts.failures == 0
        assert bookie.ledger_ids() == [4, 5]
        assert entries_of(await bookie.read(4, 2, 1, 1)) == entries_of(sealed(4, 2, 1, SIZE))

    on_machine(scenario, settings=UNTHROTTLED)


@pytest.mark.parametrize("direct", [True, False])
def test_a_compaction_bypasses_the_page_cache_as_a_flush_does(direct: bool) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        opened: dict[str, bool] = {}
        open_file = machine.disk.open

        async def noting(
            path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
        ) -> SimFile:
            if create:
                opened[path.rpartition(".")[2]] = direct
            return await open_file(path, create=create, lane=lane, direct=direct, queued=queued)

        machine.disk.open = noting  # type: ignore[method-assign]
        assert await bookie.compactor.run("major") > 0
        assert (opened["log"], opened["index"]) == (direct, False)
        await check(bookie, (4,))

    on_machine(scenario, settings=dataclasses.replace(UNTHROTTLED, db_storage_direct_io_entry_logger=direct))
