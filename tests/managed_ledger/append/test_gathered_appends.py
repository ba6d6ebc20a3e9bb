"""Entries that come in one round of the loop go to the log as one run; each asker hears where its own is, or why it is not."""

import asyncio
from typing import cast

import pytest

from managed_ledger.append.gathered_appends import GatheredAppends
from managed_ledger.contract import ManagedLedger, ManagedLedgerError
from ports.loop.promise import Promise
from wire.position import Position
from wire.run import EntryBatch, EntryRun

LEDGER, FIRST = 7, 100


class Recorder:
    """A managed ledger that stores when it is told to."""

    header_bytes = 4

    def __init__(self) -> None:
        self.batches: list[EntryBatch] = []
        self.stored: list[Promise[EntryRun]] = []

    def append(self, batch: EntryBatch) -> Promise[EntryRun]:
        self.batches.append(batch)
        self.stored.append(Promise())
        return self.stored[-1]

    def payloads(self, index: int) -> list[bytes]:
        batch = self.batches[index]
        bounds = zip(batch.offsets, batch.offsets[1:], strict=False)
        return [bytes(batch.buffer[start + self.header_bytes : end]) for start, end in bounds]

    def store(self, index: int) -> None:
        batch = self.batches[index]
        self.stored[index].set_result(EntryRun(LEDGER, FIRST, batch.buffer, batch.offsets, batch.header_bytes))


def gathered() -> tuple[Recorder, GatheredAppends]:
    recorder = Recorder()
    return recorder, GatheredAppends(cast(ManagedLedger, recorder))


def test_appends_of_one_loop_round_form_one_run_in_order() -> None:
    async def scenario() -> None:
        ledger, appends = gathered()
        promises = [appends.append(each) for each in (b"one", b"two", b"three")]
        assert ledger.batches == []
        await asyncio.sleep(0)
        assert [ledger.payloads(0)] == [[b"one", b"two", b"three"]]
        assert ledger.batches[0].message_count == 3
        ledger.store(0)
        assert [await each for each in promises] == [Position(LEDGER, FIRST + index) for index in range(3)]

    asyncio.run(scenario())


def test_rounds_do_not_wait_for_one_another() -> None:
    async def scenario() -> None:
        ledger, appends = gathered()
        for each in (b"first", b"second"):
            appends.append(each)
            await asyncio.sleep(0)
        assert [ledger.payloads(index) for index in range(2)] == [[b"first"], [b"second"]]

    asyncio.run(scenario())


def test_more_than_a_run_may_have_is_several() -> None:
    async def scenario() -> None:
        ledger, appends = gathered()
        for number in range(2_500):
            appends.append(str(number).encode())
        appends.flush()
        assert [batch.count for batch in ledger.batches] == [1000, 1000, 500]
        assert [ledger.payloads(index)[0] for index in range(3)] == [b"0", b"1000", b"2000"]

    asyncio.run(scenario())


def test_a_flush_appends_at_once_and_once() -> None:
    async def scenario() -> None:
        ledger, appends = gathered()
        appends.append(b"last")
        appends.flush()
        await asyncio.sleep(0)
        assert len(ledger.batches) == 1

    asyncio.run(scenario())


def test_a_failure_is_everybody_s_and_whoever_left_is_passed_over() -> None:
    async def scenario() -> None:
        ledger, appends = gathered()
        promises = [appends.append(each) for each in (b"left", b"stays", b"stays")]
        promises[0].cancel()
        appends.flush()
        ledger.stored[0].set_exception(ManagedLedgerError("fenced"))
        for promise in promises[1:]:
            with pytest.raises(ManagedLedgerError, match="fenced"):
                await promise
        assert promises[0].cancelled()

    asyncio.run(scenario())
