"""Every interleaving of the ledger protocol within the smallest bounds; the larger ones are `bin/check-protocol`'s."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from bookkeeper.write.quorum_tracker import Quorum, QuorumTracker, Verdict
from simulation.checks.history import Violation
from simulation.protocol.__main__ import PROTOCOL_PLANTS, main, run_planted
from simulation.protocol.exhaustive import Frozen, search
from simulation.protocol.ledger_protocol import BOUNDS, check
from wire.bookie.codes import BookieCode


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_with_one_entry_and_one_recoverer_no_promise_can_be_broken(name: str) -> None:
    found = check(replace(BOUNDS[name], entries=1, recoverers=1, given_up_max=min(1, BOUNDS[name].given_up_max)))
    assert (found.violation, found.is_complete) == (None, True), found.story
    assert found.states > 200


@pytest.mark.parametrize("name", sorted(PROTOCOL_PLANTS))
def test_a_planted_bug_is_found_with_its_story(name: str) -> None:
    found = run_planted(name)
    assert found.violation is not None
    assert 2 <= len(found.story) <= 20


def test_the_story_of_2614_is_the_one_that_was_published(capsys: pytest.CaptureFixture[str]) -> None:
    """One bookie has the entry; another, not fenced, says that it has not, and takes it afterwards."""
    assert main(["--plant", "reads-do-not-fence"]) == 1
    told = capsys.readouterr().out
    assert "entry 0 is acknowledged, and the ledger is closed at -1" in told
    read, arrival = told.index("('read', 2, 0, False)"), told.rindex("arrives at 2")
    assert read < arrival < told.index("('close', -1, 0)")


def test_bounds_that_are_not_exhausted_are_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bounds", "two entries", "--states", "100"]) == 1
    assert "NOT exhausted" in capsys.readouterr().out


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts to seven in ones and twos; five is forbidden when `forbidden`."""

    count: int
    forbidden: bool = False

    def key(self) -> int:
        return self.count

    def steps(self) -> Iterator[tuple[str, "Callable[[], Counter]"]]:
        for step in (1, 2):
            if self.count + step <= 7:
                yield f"+{step}", lambda step=step: self._plus(step)  # type: ignore[misc]

    def _plus(self, step: int) -> "Counter":
        if self.forbidden and self.count + step == 5:
            raise Violation("five")
        return replace(self, count=self.count + step)


def test_a_search_sees_every_state_once_and_tells_a_shortest_story() -> None:
    found = search(Counter(0), 100)
    assert (found.states, found.transitions, found.violation, found.is_complete) == (8, 13, None, True)
    found = search(Counter(0, forbidden=True), 100)
    assert (found.violation, len(found.story)) == ("five", 3)


def test_a_frozen_machine_is_not_changed_by_its_copy() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2))
    tracker.on_append(0, 1)
    frozen = Frozen(tracker)
    copy = frozen.thaw()
    assert Frozen(copy).key == frozen.key
    copy.on_stored(0, 0)
    assert copy.on_failed(0, 1, BookieCode.EIO) is Verdict.CHANGE
    assert Frozen(copy).key != frozen.key == Frozen(frozen.peek()).key
    copy.check_invariants()
    frozen.peek().check_invariants()
