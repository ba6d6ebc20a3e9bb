"""The quorum tracker against a naive twin that keeps every answer and looks at all of them each time."""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookkeeper.write.quorum_tracker import Quorum, QuorumTracker, Send, Verdict
from wire.bookie.codes import BookieCode

QUORUMS = st.sampled_from([(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 2, 1), (3, 2, 2), (4, 3, 2), (5, 2, 2), (5, 3, 3)])


@dataclass
class Twin:
    """Entries, not runs: who was told to store each, who has it, who failed."""

    quorum: tuple[int, int, int]
    acked: list[set[int]] = field(default_factory=list)
    failed: list[set[int]] = field(default_factory=list)

    def append(self, count: int) -> None:
        for _ in range(count):
            self.acked.append(set())
            self.failed.append(set())

    def write_set(self, entry_id: int) -> set[int]:
        ensemble, write, _ = self.quorum
        return {(entry_id + step) % ensemble for step in range(write)}

    @property
    def last_confirmed(self) -> int:
        confirmed = -1
        for entry_id, bookies in enumerate(self.acked):
            if len(bookies) < self.quorum[2]:
                break
            confirmed = entry_id
        return confirmed

    @property
    def is_broken(self) -> bool:
        return any(len(bookies) > self.quorum[1] - self.quorum[2] for bookies in self.failed)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(QUORUMS, st.data())
def test_the_tracker_and_its_naive_twin_agree_where_nobody_can_be_replaced(
    sizes: tuple[int, int, int], data: st.DataObject
) -> None:
    is_delayed = data.draw(st.booleans())
    tracker, twin = QuorumTracker(Quorum(*sizes), delays_change=is_delayed), Twin(sizes)
    unanswered: list[tuple[Send, int]] = []
    kept: set[int] = set()
    next_entry_id = 0
    for _ in range(data.draw(st.integers(1, 30))):
        if not unanswered or data.draw(st.booleans()):
            count = data.draw(st.integers(1, 5))
            sends = tracker.on_append(next_entry_id, count)
            twin.append(count)
            told: dict[int, set[int]] = {}
            for send in sends:
                unanswered += [(send, bookie) for bookie in send.seats]
                for entry_id in range(send.first_entry_id, send.first_entry_id + send.count):
                    told.setdefault(entry_id, set()).update(send.seats)
            assert told == {entry_id: twin.write_set(entry_id) for entry_id in range(next_entry_id, next_entry_id + count)}
            next_entry_id += count
        else:
            send, bookie = unanswered.pop(data.draw(st.integers(0, len(unanswered) - 1)))
            entries = range(send.first_entry_id, send.first_entry_id + send.count)
            before = twin.last_confirmed
            if data.draw(st.integers(0, 9)):
                for entry_id in entries:
                    twin.acked[entry_id].add(bookie)
                assert tracker.on_stored(send.piece, bookie) == (twin.last_confirmed > before)
            else:
                is_late = before >= entries[0]
                for entry_id in entries if not is_late else ():
                    twin.failed[entry_id].add(bookie)
                if data.draw(st.booleans()):
                    tracker.on_patience_ended()
                    kept.clear()
                verdict = tracker.on_failed(send.piece, bookie, BookieCode.EIO)
                assert (verdict is Verdict.CHANGE) == (twin.is_broken or not (is_delayed or bookie in kept))
                assert verdict is not Verdict.ENDED
                kept |= set(tracker.leaving)
                assert (tracker.on_kept(tracker.leaving) is Verdict.ENDED) == twin.is_broken
            if twin.is_broken:
                assert tracker.failure == BookieCode.EIO
                return
        assert tracker.last_confirmed == twin.last_confirmed
        tracker.check_invariants()


def test_nothing_is_confirmed_after_a_failure() -> None:
    tracker = QuorumTracker(Quorum(1, 1, 1))
    tracker.on_append(0, 1)
    tracker.on_append(1, 1)
    assert tracker.on_failed(1, 0, BookieCode.EUA) is Verdict.ENDED
    assert not tracker.on_stored(0, 0)
    assert tracker.on_failed(0, 0, BookieCode.EFENCED) is Verdict.BORNE
    assert (tracker.last_confirmed, tracker.failure) == (-1, BookieCode.EUA)


def test_a_fenced_bookie_ends_the_tracker_even_for_what_is_confirmed() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2))
    tracker.on_append(0, 4)
    assert not tracker.on_stored(0, 0)
    assert tracker.on_stored(0, 1)
    assert tracker.on_failed(0, 2, BookieCode.EFENCED) is Verdict.ENDED
    assert tracker.last_confirmed == 3


@pytest.mark.parametrize("sizes", [(1, 2, 1), (2, 1, 2), (0, 0, 0), (3, 3, 0)])
def test_quorums_that_cannot_be_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Quorum(*sizes)
