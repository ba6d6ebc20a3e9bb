"""The transaction buffer and pending acks beside naive twins, in any order of events; records read as written."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.topic.transactions.aborted import AbortedTransactions
from broker.topic.transactions.buffer import Ending, TransactionBuffer
from broker.topic.transactions.pending_ack_records import Acknowledged, Ended, Record
from broker.topic.transactions.pending_ack_records import decode as decode_record
from broker.topic.transactions.pending_ack_records import encode as encode_record
from broker.topic.transactions.pending_acks import Acked, PendingAcks, words_of
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


@given(st.lists(st.tuples(st.integers(0, 3), IDS, st.integers(0, 2)), max_size=60))
def test_what_is_forgotten_of_aborted_transactions_is_what_was_in_earlier_ledgers(steps: list[tuple[int, TxnId, int]]) -> None:
    aborted, twin, ledger = AbortedTransactions(), dict[TxnId, int](), 0
    for forget, txn_id, forward in steps:
        ledger += forward
        aborted.add(txn_id, Position(ledger, 0))
        twin.setdefault(txn_id, ledger)
        if forget == 1:
            aborted.seal(3)
        if forget == 0:
            aborted.forget_before(ledger)
            twin = {known: where for known, where in twin.items() if where >= ledger or known in aborted}
        aborted.check_invariants()
        assert len(aborted) == len(twin)
        assert all(known in aborted for known in twin)


@given(
    st.booleans(),
    IDS,
    st.lists(st.tuples(st.integers(0, 1 << 62), st.lists(st.integers(0, (1 << 64) - 1), max_size=3)), max_size=4),
)
def test_records_of_pending_acks_are_read_as_they_were_written(
    is_cumulative: bool, txn_id: TxnId, parts: list[tuple[int, list[int]]]
) -> None:
    acked = tuple(Acked(Position(entry, entry), tuple(words), len(words) * 64) for entry, words in parts)
    records: list[Record] = [
        Acknowledged(txn_id, is_cumulative, acked),
        Ended(txn_id, COMMIT, is_cumulative),
        Ended(txn_id, ABORT),
    ]
    assert [decode_record(encode_record(record)) for record in records] == records


def test_a_record_has_the_bytes_of_apaches() -> None:
    """PendingAckMetadataEntry of pulsar-broker 4.0.8: op 1, type 2, least bits 3, most bits 4, metadata 5."""
    record = Acknowledged(TxnId(2, 3), False, (Acked(Position(4, 5), words_of(6, 1), 8),))
    assert encode_record(record) == bytes.fromhex("08011000180320022a080804100518062008")


def test_broker_metadata_before_a_record_is_skipped() -> None:
    record = Ended(TxnId(2, 3), COMMIT)
    stamp = bytes.fromhex("0e02000000021000")
    assert decode_record(stamp + encode_record(record)) == record
