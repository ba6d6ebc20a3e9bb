"""Admission under any order of events: at most one exclusive producer, epochs only grow, every producer is answered."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.topic.contract import AccessMode
from broker.topic.publish.admission_events import (
    Admit,
    CheckPredecessor,
    CloseProducer,
    Effect,
    Enqueue,
    ProducerKey,
    Refuse,
    ReplaceProducer,
    StoreEpoch,
)
from tests.broker.topic.publish.producer_door import EXCLUSIVE, SHARED, Door

Step = tuple[str, int, AccessMode]


class Crowd:
    """Naive twin: who may publish and who waits, kept from the effects alone."""

    def __init__(self) -> None:
        self.door = Door(stores=False, checks=False)
        self.checking: list[CheckPredecessor] = []
        self.pending: list[StoreEpoch] = []
        self.publishing: dict[ProducerKey, AccessMode] = {}
        self.unanswered: set[ProducerKey] = set()
        self.waiting: set[ProducerKey] = set()
        self.granted: list[int] = []
        self.epochs: dict[ProducerKey, int] = {}
        self.keys = 0

    def step(self, what: str, number: int, mode: AccessMode) -> None:
        match what:
            case "arrive":
                self.arrive(mode, f"n{number}", None)
            case "return" if self.epochs:
                old = sorted(self.epochs)[number % len(self.epochs)]
                self.arrive(EXCLUSIVE, self.door.requests[old].name, self.epochs[old])
            case "leave" if self.keys:
                self.leave(ProducerKey(number % self.keys + 1))
            case "store" | "fail":
                self.settle(what == "store")
            case "there" | "gone":
                self.check(is_there=what == "there")

    def arrive(self, mode: AccessMode, name: str, topic_epoch: int | None) -> None:
        self.keys += 1
        self.unanswered.add(ProducerKey(self.keys))
        self.follow(self.door.arrive(self.keys, mode, name, epoch=self.keys, topic_epoch=topic_epoch))

    def leave(self, key: ProducerKey) -> None:
        self.publishing.pop(key, None)
        self.unanswered.discard(key)
        self.waiting.discard(key)
        self.follow(self.door.leave(key))

    def settle(self, is_stored: bool) -> None:
        if self.pending:
            store = self.pending.pop(0)
            self.follow(self.door.stored(store.key, store.epoch) if is_stored else self.door.not_stored(store.key))

    def check(self, *, is_there: bool) -> None:
        if self.checking:
            check = self.checking.pop(0)
            if not is_there:
                self.leave(check.predecessor)
            self.follow(self.door.checked(check.key))

    def follow(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Admit(key, epoch):
                    self.answered(key)
                    self.admitted(key, epoch)
                case Enqueue(key):
                    self.unanswered.remove(key)
                    self.waiting.add(key)
                case Refuse(key):
                    self.answered(key)
                case StoreEpoch():
                    self.pending.append(effect)
                case CheckPredecessor():
                    self.checking.append(effect)
                case CloseProducer(key, _) | ReplaceProducer(key):
                    self.publishing.pop(key, None)
                    self.waiting.discard(key)
            assert len(self.publishing) <= 1 or set(self.publishing.values()) == {SHARED}

    def answered(self, key: ProducerKey) -> None:
        assert key in self.unanswered or key in self.waiting
        self.unanswered.discard(key)
        self.waiting.discard(key)

    def admitted(self, key: ProducerKey, epoch: int | None) -> None:
        mode = self.publishing[key] = self.door.requests[key].access_mode
        if mode is not SHARED:
            assert epoch is not None
            self.granted.append(epoch)
            self.epochs[key] = epoch


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["arrive", "leave", "store", "fail", "return", "there", "gone"]),
            st.integers(0, 5),
            st.sampled_from(list(AccessMode)),
        ),
        max_size=40,
    )
)
def test_any_events_leave_at_most_one_exclusive_producer_and_epochs_only_grow(steps: list[Step]) -> None:
    crowd = Crowd()
    for step in steps:
        crowd.step(*step)
    while crowd.pending or crowd.checking:
        crowd.settle(True)
        crowd.check(is_there=True)
    assert crowd.granted == sorted(crowd.granted)
    assert not crowd.unanswered, "everybody was answered"
    assert not crowd.waiting or crowd.publishing, "nobody waits for an empty topic"
