"""Ensemble changes in the quorum tracker: what is confirmed is where the metadata says, whatever fails and however answers
come."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment, decode_ledger_metadata, encode_ledger_metadata
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.quarantine import Quarantine
from bookkeeper.placement.rack_placement import AnyPlace
from bookkeeper.write.ensemble_change import RecoveryEnsembles
from bookkeeper.write.quorum_tracker import Quorum, QuorumTracker, Send, Verdict
from simulation.world.rng import stream
from wire.bookie.codes import BookieCode

QUORUMS = st.sampled_from([(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 2, 1), (3, 2, 2), (4, 3, 2), (5, 2, 2), (5, 3, 3)])


@dataclass
class Cluster:
    """Bookies by seat, the metadata's segments, and what is under way between them."""

    quorum: Quorum
    tracker: QuorumTracker
    segments: list[tuple[int, list[int]]] = field(default_factory=list)
    acked: dict[int, set[int]] = field(default_factory=dict)
    """Entries whose ack came, by seat."""
    unanswered: list[tuple[Send, int]] = field(default_factory=list)
    next_entry_id: int = 0

    def append(self, count: int) -> None:
        self.sent(self.tracker.on_append(self.next_entry_id, count))
        self.next_entry_id += count

    def sent(self, sends: Sequence[Send]) -> None:
        for send in sends:
            assert all(self.tracker.index_of(seat) is not None for seat in send.seats)
            self.unanswered += [(send, seat) for seat in send.seats]

    def answer(self, number: int, code: BookieCode) -> None:
        send, seat = self.unanswered.pop(number)
        if code != BookieCode.EOK:
            self.tracker.on_failed(send.piece, seat, code)
            return
        self.acked.setdefault(seat, set()).update(range(send.first_entry_id, send.first_entry_id + send.count))
        self.tracker.on_stored(send.piece, seat)

    def change(self, kept: int) -> None:
        """Writes the metadata, then tells the tracker; the first `kept` of the leaving seats find no replacement and stay."""
        leaving = list(self.tracker.leaving)
        replaced, stay = leaving[kept:], leaving[:kept]
        indexes = {seat: self.tracker.index_of(seat) for seat in replaced}
        ensemble = list(self.segments[-1][1])
        first = self.tracker.last_confirmed + 1
        changed = self.tracker.on_changed(replaced, stay)
        assert sorted(changed.seats) == sorted(index for index in indexes.values() if index is not None)
        for index, seat in changed.seats.items():
            assert seat not in {taken for _, seats in self.segments for taken in seats}, "a seat is taken once"
            ensemble[index] = seat
        if replaced:
            self.segments = [segment for segment in self.segments if segment[0] < first] + [(first, ensemble)]
        self.sent(changed.sends)

    def check(self) -> None:
        self.tracker.check_invariants()
        firsts = [first for first, _ in self.segments]
        assert firsts == sorted(set(firsts)), "BookKeeper issue 4651"
        for entry_id in range(self.tracker.last_confirmed + 1):
            ensemble = [seats for first, seats in self.segments if first <= entry_id][-1]
            assert len(set(ensemble)) == len(ensemble)
            holders = [index for index in self.quorum.write_set(entry_id) if entry_id in self.acked.get(ensemble[index], set())]
            assert len(holders) >= self.quorum.ack_quorum, f"entry {entry_id} is not where the metadata says"


FAILURES = [BookieCode.EIO, BookieCode.EREADONLY, BookieCode.ETOOMANYREQUESTS]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(QUORUMS, st.booleans(), st.data())
def test_incidents_3005_and_4194_what_is_confirmed_is_on_an_ack_quorum_of_the_bookies_that_the_metadata_names(
    sizes: tuple[int, int, int], is_delayed: bool, data: st.DataObject
) -> None:
    quorum = Quorum(*sizes)
    cluster = Cluster(quorum, QuorumTracker(quorum, delays_change=is_delayed), [(0, list(range(sizes[0])))])
    tracker = cluster.tracker
    for _ in range(data.draw(st.integers(1, 40))):
        before = tracker.last_confirmed, bool(tracker.leaving)
        match data.draw(st.sampled_from(["append", "ack", "ack", "ack", "fail", "change"])):
            case "append" if tracker.failure is None:
                cluster.append(data.draw(st.integers(1, 4)))
            case "change" if tracker.leaving and tracker.failure is None:
                cluster.change(data.draw(st.integers(0, 1)))
                before = -1, False
            case "ack" | "fail" as how if cluster.unanswered:
                code = BookieCode.EOK if how == "ack" else data.draw(st.sampled_from(FAILURES))
                cluster.answer(data.draw(st.integers(0, len(cluster.unanswered) - 1)), code)
        if before[1]:
            assert tracker.last_confirmed == before[0], "nothing is confirmed while an ensemble is changed"
        cluster.check()
    while tracker.failure is None and (tracker.leaving or cluster.unanswered):  # everything is healed: all is confirmed
        if tracker.leaving:
            cluster.change(0)
        else:
            cluster.answer(0, BookieCode.EOK)
        cluster.check()
    if tracker.failure is None and not is_delayed:
        assert tracker.last_confirmed == cluster.next_entry_id - 1


def test_acks_of_the_replaced_bookie_are_taken_back_from_every_entry_before_any_is_confirmed() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2))
    for entry_id in range(3):
        tracker.on_append(entry_id, 1)
    for piece in (1, 2):  # both have their quorum, and wait for the first
        assert not tracker.on_stored(piece, 0)
        assert not tracker.on_stored(piece, 1)
    assert not tracker.on_stored(0, 0)
    assert tracker.on_failed(0, 1, BookieCode.EIO) is Verdict.CHANGE
    assert not tracker.on_stored(0, 2), "the quorum is there, but the ensemble is being changed"
    changed = tracker.on_changed([1])
    assert changed.seats == {1: 3}
    assert [(send.first_entry_id, send.seats) for send in changed.sends] == [(0, [3]), (1, [3]), (2, [3])]
    assert tracker.last_confirmed == 0, "the second was on the bookie that left"
    assert not tracker.on_stored(1, 1), "a late answer of who left"
    assert tracker.on_stored(1, 3)
    assert tracker.last_confirmed == 1


def test_a_delayed_change_comes_when_the_quorum_breaks_and_takes_everybody_who_failed() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2), delays_change=True)
    tracker.on_append(0, 1)
    assert tracker.on_failed(0, 0, BookieCode.EIO) is Verdict.BORNE
    assert tracker.on_failed(0, 2, BookieCode.EIO) is Verdict.CHANGE
    assert sorted(tracker.leaving) == [0, 2]


def test_a_bookie_that_is_read_only_is_replaced_at_once_however_long_changes_are_delayed() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2), delays_change=True)
    tracker.on_append(0, 1)
    assert tracker.on_failed(0, 1, BookieCode.EREADONLY) is Verdict.CHANGE
    assert list(tracker.leaving) == [1]


def test_a_bookie_that_fails_what_is_confirmed_already_is_replaced_too() -> None:
    tracker = QuorumTracker(Quorum(3, 3, 2))
    tracker.on_append(0, 1)
    tracker.on_stored(0, 0)
    assert tracker.on_stored(0, 1)
    assert tracker.on_failed(0, 2, BookieCode.EIO) is Verdict.CHANGE
    changed = tracker.on_changed([2])
    assert list(changed.sends) == []
    assert list(tracker.on_append(1, 1)[0].seats) == [0, 1, 3]


def test_a_recovery_that_changes_its_ensemble_twice_before_an_entry_has_one_segment_there() -> None:
    rng, metadata = stream(1, "place"), LedgerMetadata(2, 2, 2, (Segment(0, ("a:1", "b:1")),))
    ensembles = RecoveryEnsembles(Candidates({}, AnyPlace(rng), Quarantine(None, rng)), 7, metadata)
    for bookies in (("a:1", "c:1"), ("d:1", "c:1")):
        asyncio.run(ensembles.store(5, bookies))
    asyncio.run(ensembles.store(9, ("d:1", "e:1")))
    assert ensembles.segments == [Segment(5, ("d:1", "c:1")), Segment(9, ("d:1", "e:1"))]


@pytest.mark.parametrize("size", range(200))
def test_the_metadata_of_a_ledger_is_read_back_whatever_its_size(size: int) -> None:
    metadata = LedgerMetadata(2, 2, 2, (Segment(0, ("a:1", "b:1")),), custom_metadata={"k": bytes(size)})
    assert decode_ledger_metadata(encode_ledger_metadata(metadata)) == metadata
