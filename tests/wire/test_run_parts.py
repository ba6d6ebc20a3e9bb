"""Checks of a run look at its two ends and find what is not what it says; entries with a gap are never joined."""

from array import array

import pytest

from tests.bookie.runs import mixed, sealed
from wire.run import EntryMix, EntryRun
from wire.run_parts import answers, can_be_stored, join


@pytest.mark.parametrize("following", [sealed(1, 8), sealed(1, 6), sealed(2, 7)])
def test_runs_that_do_not_follow_one_another_are_not_joined(following: EntryRun) -> None:
    assert join([sealed(1, 5, 2), sealed(1, 7)]).count == 3
    with pytest.raises(AssertionError):
        join([sealed(1, 5, 2), following])


def test_a_run_can_be_stored_when_its_buffer_has_its_entries_and_its_ends_carry_its_ids() -> None:
    run = sealed(3, 5, 4)
    assert can_be_stored(run)
    assert can_be_stored(run.entries(6, 2))
    for other in (
        EntryRun(3, 6, run.buffer, run.offsets),
        EntryRun(4, 5, run.buffer, run.offsets),
        EntryRun(3, 5, run.buffer[:-1], run.offsets),
        EntryRun(3, 5, run.buffer, run.offsets[:1]),
        EntryRun(3, 5, run.buffer, array("I", [0, *run.offsets[2:]])),
    ):
        assert not can_be_stored(other)


def test_a_mix_can_be_stored_when_it_fills_its_buffer() -> None:
    mix = mixed([sealed(3, 5, 2), sealed(4, 0, 2)])
    assert can_be_stored(mix)
    assert not can_be_stored(EntryMix(mix.buffer + b"x", mix.offsets))
    assert not can_be_stored(EntryMix(mix.buffer, mix.offsets[1:]))


def test_an_answer_begins_with_the_entry_that_was_asked_for_and_has_no_more_than_that() -> None:
    run = sealed(3, 5, 2)
    assert answers(run, 3, 5, 2)
    assert answers(run.entries(5, 1), 3, 5, 0), "one entry at least"
    assert not any([answers(run, 4, 5, 2), answers(run, 3, 4, 2), answers(run, 3, 5, 1)])
