"""Readers of committed messages, beside a naive twin."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.topic.transactions.buffer import Ending, TransactionBuffer
from wire.position import Position
from wire.transactions import TxnAction, TxnId

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT


IDS = st.builds(TxnId, st.integers(0, 2), st.integers(0, 6))


@dataclass
class NaiveLog:
    """Every entry with its transaction; the buffer's answers follow from reading all of it."""

    entries: list[tuple[TxnId | None, TxnAction | None]] = field(default_factory=list)

    def last(self) -> Position:
        return Position(5, len(self.entries) - 1)

    def decided(self) -> dict[TxnId, TxnAction]:
        found: dict[TxnId, TxnAction] = {}
        for txn_id, action in self.entries:
            if txn_id is not None and action is not None:
                found.setdefault(txn_id, action)
        return found

    def readable_until(self) -> int:
        """The index of the first message that is not decided."""
        decided = self.decided()
        for index, (txn_id, _) in enumerate(self.entries):
            if txn_id is not None and txn_id not in decided:
                return index
        return len(self.entries)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), IDS),
        st.tuples(st.just("plain"), IDS),
        st.tuples(st.just("commit"), IDS),
        st.tuples(st.just("abort"), IDS),
        st.tuples(st.just("stored"), IDS),
        st.tuples(st.just("forgotten"), IDS),
    ),
    max_size=60,
)


class Played:
    """The buffer and the log under it. Messages are known to be stored some time after they are."""

    def __init__(self) -> None:
        self.log, self.buffer = NaiveLog(), TransactionBuffer()
        self.known = 0
        """Entries that the buffer was told of."""

    def handle(self, what: str, txn_id: TxnId) -> None:
        match what:
            case "send" if self.buffer.takes(txn_id):
                self.buffer.began(txn_id, Position(5, self.known - 1))
                self.log.entries.append((txn_id, None))
            case "plain":
                self.log.entries.append((None, None))
            case "commit" | "abort":
                self.end(txn_id, COMMIT if what == "commit" else ABORT)
            case "forgotten":
                for leftover in self.buffer.low_water_mark(txn_id.most, txn_id.least):
                    self.end(leftover, ABORT)
                assert not self.buffer.takes(txn_id)
            case "stored":
                self.store(2)

    def end(self, txn_id: TxnId, action: TxnAction) -> None:
        """One marker of a transaction, as the driver sees to."""
        if self.buffer.ending(txn_id, action) is Ending.WRITE_MARKER:
            self.log.entries.append((txn_id, action))
            self.store(len(self.log.entries))

    def store(self, count: int) -> None:
        for index in range(self.known, min(self.known + count, len(self.log.entries))):
            txn_id, action = self.log.entries[index]
            if txn_id is not None and action is None:
                self.buffer.stored(txn_id, Position(5, index - 1))
            elif txn_id is not None and action is not None:
                self.buffer.ended(txn_id, action, Position(5, index))
            self.known = index + 1

    def check(self) -> None:
        self.buffer.check_invariants()
        limit = self.buffer.limit()
        reach = self.known if limit is None else limit.entry_id + 1
        assert reach <= max(self.log.readable_until(), 0), "too much may be read"

    def recovered(self) -> TransactionBuffer:
        again = TransactionBuffer()
        for index, (txn_id, action) in enumerate(self.log.entries):
            if txn_id is not None and action is None:
                again.replayed(txn_id, Position(5, index - 1))
            elif txn_id is not None and action is not None:
                again.ended(txn_id, action, Position(5, index))
        return again


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_readers_stop_before_the_first_message_that_is_not_decided(events: list[tuple[str, TxnId]]) -> None:
    """Never may be read too much, and in the end all there is; a recovery finds the same."""
    played = Played()
    for what, txn_id in events:
        played.handle(what, txn_id)
        played.check()
    played.store(len(played.log.entries))
    limit, log, everybody = played.buffer.limit(), played.log, [TxnId(most, least) for most in range(3) for least in range(7)]
    assert (len(log.entries) if limit is None else limit.entry_id + 1) == log.readable_until()
    aborted = {txn_id for txn_id, action in log.decided().items() if action is ABORT}
    for buffer in (played.buffer, played.recovered()):
        assert buffer.limit() == limit
        assert {txn_id for txn_id in everybody if txn_id in buffer.aborted} == aborted
        assert len(buffer.aborted) == len(aborted)
