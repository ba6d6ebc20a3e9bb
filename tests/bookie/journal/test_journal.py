"""The journal's driver: what shares a write, who hears of it, and what a bug of ours costs."""

import asyncio

import pytest

from bookie.journal import format_v1
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, sealed
from wire.bookie.codes import BookieCode, BookieError


def test_adds_of_one_turn_share_a_write() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        before = bookie.journal.durable.sequence
        await asyncio.gather(*[bookie.add(sealed(1, entry_id), KEY) for entry_id in range(1, 20)])
        assert bookie.journal.durable.sequence == before + 1

    on_machine(scenario)


def test_lone_adds_are_written_one_by_one_also_into_the_next_files() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(60):
            await bookie.add(sealed(1, entry_id, 1, 60_000), KEY)
        assert bookie.journal.durable.file_id > 2
        assert bookie.journal.durable.sequence >= 60
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert await bookie.last_entry_id(1) == 59

    on_machine(scenario)


def test_a_bug_while_a_frame_is_made_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a bug")

    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        monkeypatch.setattr(format_v1, "encode_frame", broken)
        adds = [bookie.add(sealed(1, entry_id), KEY) for entry_id in (1, 2)]
        for add in adds:
            with pytest.raises(BookieError) as refused:
                await add
            assert refused.value.code is BookieCode.EREADONLY
        assert bookie.read_only_reason
        with pytest.raises(BookieError):
            await bookie.add(sealed(1, 3), KEY)
        await bookie.stop()

    on_machine(scenario)
