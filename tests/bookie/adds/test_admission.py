"""Entries that are not what they say stop at the bookie's door: no memtable, no journal and no reader has them."""

import pytest

from bookie.adds import admission
from bookie.adds.memtable import COPIED_RUN_BYTES_MAX
from bookie.reads.reading import Gathering
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, entries_of, mixed, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryMix, EntryRun


def test_a_run_with_the_ids_of_others_is_neither_journaled_nor_found_after_a_restart() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 4), KEY)
        written, run = bookie.journal.written_bytes, sealed(1, 5, 2)
        with pytest.raises(AssertionError, match="run 1:6 is not what it says"):
            bookie.add(EntryRun(1, 6, run.buffer, run.offsets), KEY)
        mix = mixed([sealed(1, 5)])
        with pytest.raises(AssertionError, match="does not fill its buffer"):
            bookie.add_mix(EntryMix(mix.buffer + b"x", mix.offsets), KEY)
        await bookie.journal.written()
        assert bookie.journal.written_bytes == written
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert bookie.held_ranges(1) == [(4, 4)]
        await bookie.add(run, KEY)
        assert entries_of(await bookie.read(1, 5, 2, 1 << 20)) == entries_of(run)

    on_machine(scenario)


def test_without_the_check_such_a_run_is_acknowledged_and_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "can_be_stored", lambda entries: True)

    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        run = sealed(1, 5, 2, COPIED_RUN_BYTES_MAX)  # a small one is copied to the place that its headers say
        await bookie.add(EntryRun(1, 6, run.buffer, run.offsets), KEY)
        with pytest.raises(BookieError, match=BookieCode.EIO.name):
            await bookie.read(1, 6, 1, 1 << 20)

    on_machine(scenario)


def test_a_read_that_gathers_other_entries_than_those_that_follow_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 2), KEY)

        monkeypatch.setattr(Gathering, "whole", lambda self: sealed(1, 1, 2))
        with pytest.raises(AssertionError, match=r"1\+2 is no answer"):
            await bookie.read(1, 0, 10, 1 << 20)

    on_machine(scenario)
