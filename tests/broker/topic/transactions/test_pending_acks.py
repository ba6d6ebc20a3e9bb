"""Pending acknowledgements of transactions, beside a naive twin."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.topic.transactions.pending_acks import Acked, PendingAcks
from wire.position import Position
from wire.transactions import TxnAction, TxnId

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT


IDS = st.builds(TxnId, st.integers(0, 2), st.integers(0, 6))


class NaivePlace:
    """A cursor of which every acknowledged message is listed; each entry is a batch of four."""

    mark_delete = Position(-1, -1)

    def __init__(self) -> None:
        self.acknowledged: set[tuple[Position, int]] = set()

    def _left(self, position: Position) -> list[int]:
        return [index for index in range(4) if (position, index) not in self.acknowledged]

    def is_acknowledged(self, position: Position) -> bool:
        return not self._left(position)

    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None:
        left = self._left(position)
        return None if len(left) == 4 else (sum(1 << index for index in left),)


PARTS = st.tuples(st.builds(Position, st.just(5), st.integers(0, 3)), st.integers(0, 14))


STEPS = st.lists(st.tuples(st.sampled_from(["ack", "commit", "abort", "plain"]), IDS, st.lists(PARTS, max_size=3)), max_size=40)


class Acknowledgers:
    """Pending acks, the cursor, and of each transaction what it has acknowledged, message by message."""

    def __init__(self) -> None:
        self.pending, self.place = PendingAcks(), NaivePlace()
        self.twin: dict[TxnId, set[tuple[Position, int]]] = {}

    @property
    def held(self) -> set[tuple[Position, int]]:
        return {message for messages in self.twin.values() for message in messages}

    def acknowledge(self, txn_id: TxnId, parts: list[tuple[Position, int]]) -> None:
        acked = [Acked(position, (word,) if word else (), 4) for position, word in parts]
        messages = _messages(parts)
        in_parts = set(_messages([part for part in parts if part[1]]))
        is_taken = any(self.place.is_acknowledged(position) for position, _ in parts)
        clash = is_taken or bool((self.held & set(messages)) | (in_parts & self.place.acknowledged))
        clash = clash or len(set(messages)) < len(messages)
        found = self.pending.conflict(txn_id, acked, self.place)
        assert (found is not None) == clash, found
        if found is None:
            self.pending.add(txn_id, acked)
            self.twin.setdefault(txn_id, set()).update(messages)

    def end(self, txn_id: TxnId, action: TxnAction) -> None:
        taken = self.pending.take(txn_id, action)
        was = self.twin.pop(txn_id, set())
        assert set(taken.bits if taken else ()) == {position for position, _ in was}
        if action is COMMIT:
            self.place.acknowledged |= was

    def check(self) -> None:
        self.pending.check_invariants()
        for position in (Position(5, entry) for entry in range(4)):
            gone = {index for index in range(4) if (position, index) in self.held | self.place.acknowledged}
            if position.entry_id in self.pending.whole_in(5):
                assert gone == set(range(4))
                continue
            words = self.pending.unacknowledged(position, self.place.unacknowledged_batch_indexes(position))
            assert gone == {index for index in range(4) if words is not None and not words[0] >> index & 1}


def _messages(parts: list[tuple[Position, int]]) -> list[tuple[Position, int]]:
    return [(position, index) for position, word in parts for index in range(4) if not word >> index & 1]


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_each_message_is_acknowledged_by_one_transaction_at_most(
    steps: list[tuple[str, TxnId, list[tuple[Position, int]]]],
) -> None:
    world = Acknowledgers()
    for what, txn_id, parts in steps:
        match what:
            case "ack" if parts and world.pending.takes(txn_id):
                world.acknowledge(txn_id, parts)
            case "commit" | "abort":
                world.end(txn_id, COMMIT if what == "commit" else ABORT)
            case "plain":
                world.place.acknowledged |= set(_messages(parts))
        world.check()
