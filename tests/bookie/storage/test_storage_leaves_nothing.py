"""Leftovers that a bookie's storage and journal do not have: dead logs, files that nothing names, open files, work undone."""

import asyncio
import dataclasses
from typing import Any

import pytest

from bookie.adds.memtable import Memtable
from bookie.journal.format_v1 import JournalMark
from bookie.journal.journal import Journal
from bookie.storage.log_file import LogFile, new_log
from bookie.storage.log_writer import next_turn
from bookie.storage.storage import Flush, LedgerStorage
from bookie.upkeep.compaction import Compaction
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, sealed
from tests.bookie.upkeep.mixed_logs import SIZE, UNTHROTTLED, logs, mixed_logs


async def storage_of(machine: Machine) -> LedgerStorage:
    """Storage of a bookie that has flushed several logs."""
    return (await mixed_logs(machine))._storage


def test_a_log_before_the_last_of_which_nothing_is_alive_is_told_as_dead_and_goes() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in (1, 2):
            for entry_id in range(14):
                await bookie.add(sealed(ledger_id, entry_id, 1, SIZE), KEY)
            await bookie.flush()
        storage = bookie._storage
        assert len(storage.checkpoint.logs) == 2, "one for each"
        first = storage.checkpoint.logs[0]
        storage.forget(1)
        assert [(use.log_id, use.live_bytes) for use in storage.uses()] == [(first.log_id, 0)]
        assert await storage.drop_dead_logs() == [first.log_id]
        assert len(logs(machine)) == 1

    on_machine(scenario, settings=dataclasses.replace(UNTHROTTLED, log_size_limit=14 * SIZE))


def test_files_that_are_of_no_use_go_with_the_next_checkpoint() -> None:
    async def scenario(machine: Machine) -> None:
        storage = await storage_of(machine)
        target = storage.new_log()
        await target.open()
        await target.close()
        left = logs(machine)
        storage.abandon(target.names)
        await storage._store_checkpoint(storage.checkpoint)
        assert len(logs(machine)) == len(left) - 1

    on_machine(scenario, settings=UNTHROTTLED)


def test_a_compacted_log_whose_sources_are_gone_already_goes_itself() -> None:
    async def scenario(machine: Machine) -> None:
        storage = await storage_of(machine)
        target = storage.new_log()
        await target.open()
        span = await target.append([sealed(1, 99)])
        extent, _ = await target.finish()
        await target.close()
        assert span.log_id == extent.log_id
        left = logs(machine)
        await storage.replace_logs([77], extent, [])
        assert len(logs(machine)) == len(left) - 1
        assert extent not in storage.checkpoint.logs

    on_machine(scenario, settings=UNTHROTTLED)


def test_a_stopped_bookie_has_no_open_files() -> None:
    async def scenario(machine: Machine) -> None:
        opened: list[Any] = []
        original = machine.disk.open

        async def noting(*arguments: Any, **options: Any) -> Any:
            opened.append(await original(*arguments, **options))
            return opened[-1]

        machine.disk.open = noting  # type: ignore[method-assign]
        bookie = await mixed_logs(machine)
        await bookie.read(1, 0, 1, 1)
        bookie.journal._files.prepare_next()
        await asyncio.sleep(1)
        await bookie.stop()
        assert [file.path for file in opened if not file._is_closed] == []

    on_machine(scenario, settings=UNTHROTTLED)


def test_a_journal_stops_also_when_all_that_waits_is_nothing_to_write() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        waiting = asyncio.ensure_future(bookie.journal.written())
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await bookie.journal.stop()
        assert waiting.done()

    on_machine(scenario)


def test_a_wait_queued_before_the_start_of_a_journal_ends_after_it() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.disk.make_directories("/journal")
        journal = Journal(machine.disk, "/journal", b"secret", SMALL, lambda error, records: False)
        replay = journal.replay(JournalMark(), ended=False)
        async for _ in replay.frames():
            raise AssertionError("there is nothing")
        waiting = asyncio.ensure_future(journal.written())
        await asyncio.sleep(1)
        assert not waiting.done()
        await journal.start(replay)
        async with asyncio.timeout(10):
            await waiting
        await journal.stop()

    on_machine(scenario)


def test_a_damaged_block_that_ends_a_compaction_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2, 3])
        (first, *_) = logs(machine)
        machine.disk.contents(first).flip_bit(4096 + 3 * SIZE + SIZE // 2 + 300, 3)
        await bookie.compactor.run("major")

    on_machine(scenario, settings=UNTHROTTLED)
    assert any("entry log is damaged" in text and "log=00000001" in text for text in caplog.messages)


def test_a_compaction_that_is_cancelled_ends_when_its_checkpoint_is_replaced_or_not() -> None:
    async def scenario(machine: Machine) -> None:
        storage = await storage_of(machine)
        begun, replaced = asyncio.Event(), asyncio.Event()

        async def replace_logs(*arguments: object) -> None:
            begun.set()
            await asyncio.sleep(1)
            replaced.set()

        storage.replace_logs = replace_logs  # type: ignore[method-assign, assignment]
        compacting = asyncio.ensure_future(Compaction(storage, 0).compact([storage.uses()[0].log_id]))
        await begun.wait()
        compacting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await compacting
        assert replaced.is_set()

    on_machine(scenario, settings=UNTHROTTLED)


@pytest.mark.parametrize(("job_ended", "was_ended", "is_further", "ended"), [
    (True, False, True, True), (False, True, False, True), (False, True, True, False), (False, False, False, False),
])  # fmt: skip
def test_the_end_of_a_journal_file_is_remembered_until_the_mark_moves(
    job_ended: bool, was_ended: bool, is_further: bool, ended: bool
) -> None:
    async def scenario(machine: Machine) -> None:
        storage = await storage_of(machine)
        storage.checkpoint = dataclasses.replace(storage.checkpoint, journal_ended=was_ended)
        mark = storage.checkpoint.mark
        further = dataclasses.replace(mark, sequence=mark.sequence + 1) if is_further else mark
        await storage._flush(Flush(Memtable(), further, (), (), job_ended), [], next_turn)
        assert storage.checkpoint.journal_ended is ended

    on_machine(scenario, settings=UNTHROTTLED)


def test_tables_of_blocks_and_what_is_read_ahead_share_one_cache() -> None:
    async def scenario(machine: Machine) -> None:
        settings = dataclasses.replace(SMALL, db_storage_read_ahead_cache_max_size_mb=8)
        reader = LedgerStorage(machine.disk, "/other", settings)._reader
        assert reader._tables_bytes_max + reader._ahead._bytes_max == 8 << 20

    on_machine(scenario)


def test_a_log_is_written_in_pieces_and_not_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bookie.storage.log_file.WRITE_BYTES", 100_000)

    async def scenario(machine: Machine) -> None:
        await machine.disk.make_directories("/logs")
        file = LogFile(machine.disk, "/logs", new_log(1), "test", direct=False)
        await file.open()
        sizes = []
        for entry_id in range(4):
            await file.append([sealed(1, entry_id, 1, 40_000)])
            sizes.append(machine.disk.contents(logs(machine)[0]).size)
        assert sizes[0] == sizes[1] < 100_000 < sizes[2] == sizes[3]
        await file.close()

    on_machine(scenario)
