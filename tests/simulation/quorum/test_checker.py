"""QuorumChecker with a forgetful bookie: what is excused, and what is not."""

from array import array

import pytest

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from simulation.checks.history import Violation
from simulation.quorum.checker import HEADER_BYTES, QuorumChecker
from wire.run import EntryRun

OPEN = LedgerMetadata(3, 3, 2, (Segment(0, ("a", "b", "c")),))


class Story:
    """A ledger on a, b and c, of which a forgets."""

    def __init__(self) -> None:
        self.metadata = OPEN
        self.checker = QuorumChecker(lambda: self.metadata)
        self.checker.forgetful = "a"

    def stored(self, *bookies: str, recovery: bool = False) -> None:
        confirmed_none = (-1).to_bytes(8, signed=True)
        stored = bytes(16) + confirmed_none + bytes(HEADER_BYTES - 24) + b"x"
        for bookie in bookies:
            run = EntryRun(0, 0, stored, array("I", [0, len(stored)]), HEADER_BYTES)
            self.checker.on_stored(bookie, run, recovery=recovery)

    def acknowledged(self) -> None:
        self.checker.on_acknowledged(0, b"x")

    def closed_without_it(self) -> None:
        self.metadata = OPEN.closed(-1, 0)
        self.checker.on_ended("somebody", -1, 0)


def test_an_end_before_what_only_the_forgetful_one_and_another_had_is_excused() -> None:
    story = Story()
    story.stored("a", "b")
    story.acknowledged()
    story.closed_without_it()


def test_an_end_before_what_an_ack_quorum_of_the_others_had_is_not() -> None:
    story = Story()
    story.stored("b", "c")
    story.acknowledged()
    with pytest.raises(Violation, match="entry 0 was acknowledged, and the ledger ends at -1"):
        story.closed_without_it()


def test_copies_that_a_recovery_made_are_no_promise_of_the_writer() -> None:
    story = Story()
    story.stored("a", "b")
    story.acknowledged()
    story.stored("c", recovery=True)
    story.closed_without_it()


def test_without_a_forgetful_one_nothing_is_excused() -> None:
    story = Story()
    story.checker.forgetful = ""
    story.stored("a", "b")
    story.acknowledged()
    with pytest.raises(Violation, match="the ledger ends at -1"):
        story.closed_without_it()


def test_an_entry_is_lacking_while_one_of_its_bookies_is_gone() -> None:
    story = Story()
    story.stored("a", "b")
    story.acknowledged()
    story.metadata = OPEN.closed(0, 1)
    story.checker.on_ended("somebody", 0, 1)
    assert story.checker.lacking() is None
    story.checker.gone = "c"
    assert story.checker.lacking() == "entry 0: ['a', 'b', 'c']"
