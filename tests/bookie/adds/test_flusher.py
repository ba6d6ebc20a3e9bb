"""A flush leaves the loop to others between two slices, unless a caller or the filling table waits for it."""

import asyncio

import pytest

from bookie.adds.flusher import PAUSE_SECONDS
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, sealed

LEDGERS = 60


@pytest.mark.parametrize(("runs", "is_awaited", "pauses"), [(1, False, True), (1, True, False), (30, False, False)])
def test_a_flush_pauses_only_where_nobody_waits_for_it(runs: int, is_awaited: bool, pauses: bool) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in range(runs):
            await bookie.add(sealed(ledger_id, 0, 1, 10_000), KEY)
        flush = asyncio.ensure_future(bookie.flush()) if is_awaited else None
        await asyncio.sleep(0)
        began = machine.loop.time()
        await bookie._flusher._pause()
        assert (machine.loop.time() - began >= PAUSE_SECONDS) is pauses
        if flush is not None:
            await flush

    on_machine(scenario, settings=SMALL)


def test_a_flush_of_many_ledgers_pauses_after_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        pauses = 0

        async def count() -> None:
            nonlocal pauses
            pauses += 1

        monkeypatch.setattr(bookie._flusher, "_pause", count)
        for ledger_id in range(LEDGERS):
            await bookie.add(sealed(ledger_id, 0, 1, 100), KEY)
        await bookie.flush()
        assert pauses >= 3  # the sort, and 60 ledgers of 9 in slices of 256

    on_machine(scenario, settings=SMALL)
