"""The coordinator's machine: what may be done when, the naive twin, and that the log alone gives it back."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError, ServerError
from broker.transaction.log_format import decode, encode
from broker.transaction.machine import ENDED_MAX, TransactionMachine
from broker.transaction.records import Opened, Place, Record, StatusChanged, TxnStatus, TxnSubscription
from wire.generated.transaction_log_pb2 import TransactionMetadataEntry
from wire.position import Position
from wire.transactions import TxnAction

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT
T, S = "persistent://public/default/t", TxnSubscription("persistent://public/default/t", "s")


class Book:
    """A machine, its log, and a naive twin of what is known."""

    def __init__(self, active_max: int = 0) -> None:
        self.machine = TransactionMachine(3, active_max)
        self.log: list[bytes] = []
        self.let_go: list[Place] = []

    def write(self, record: Record | None) -> None:
        if record is not None:
            self.log.append(encode(3, record, self.machine.last_sequence, 0))
            self.machine.stored(record, Place(Position(1, len(self.log) - 1)))
            if isinstance(record, StatusChanged) and record.new.has_ended:
                self.let_go += self.machine.ended(record.least)
        self.machine.check_invariants()

    def open(self, timeout_ms: int = 1000, now_ms: int = 0, owner: str | None = None) -> int:
        record = self.machine.open(owner, timeout_ms, now_ms)
        self.write(record)
        return record.least

    def end(self, least: int, action: TxnAction) -> None:
        self.write(self.machine.end(least, action))

    def finish(self, least: int) -> None:
        self.write(self.machine.finish(least))

    def replayed(self, start: int = 0) -> TransactionMachine:
        found = TransactionMachine(3)
        for entry_id in range(start, len(self.log)):
            for record, last in decode(memoryview(self.log[entry_id])):
                found.replay(record, Place(Position(1, entry_id)), last)
        found.check_invariants()
        return found


def code_of(call: Callable[..., object], *args: object) -> ServerError:
    with pytest.raises(BrokerError) as failure:
        call(*args)
    return failure.value.code


def shape(machine: TransactionMachine) -> list[tuple[object, ...]]:
    return [
        (each.least, each.status, set(each.partitions), set(each.subscriptions), each.due_ms, each.owner, each.places)
        for each in machine.active()
    ]


def test_a_transaction_goes_its_way_and_its_records_are_let_go_in_the_order_of_the_log() -> None:
    book = Book()
    least = book.open()
    book.write(book.machine.add_partitions(least, [T, T]))
    book.write(book.machine.add_subscriptions(least, [S]))
    assert book.machine.add_partitions(least, [T]) is None, "it is known already"
    book.end(least, COMMIT)
    assert not book.let_go
    book.finish(least)
    assert [place.position.entry_id for place in book.let_go] == [0, 1, 2, 3, 4]
    assert book.machine.active_count == 0


def test_an_ended_transaction_takes_no_participants_and_ends_again_only_in_the_same_way() -> None:
    book = Book()
    for action, other in ((COMMIT, ABORT), (ABORT, COMMIT)):
        least = book.open()
        book.end(least, action)
        assert book.machine.end(least, action) is None
        assert code_of(book.machine.end, least, other) is ServerError.INVALID_TXN_STATUS
        assert code_of(book.machine.add_partitions, least, [T]) is ServerError.INVALID_TXN_STATUS
        assert code_of(book.machine.add_subscriptions, least, [S]) is ServerError.INVALID_TXN_STATUS
        book.finish(least)
        assert book.machine.end(least, action) is None
        assert code_of(book.machine.end, least, other) is ServerError.TRANSACTION_NOT_FOUND
        assert code_of(book.machine.add_partitions, least, [T]) is ServerError.TRANSACTION_NOT_FOUND


def test_a_transaction_that_never_existed_is_not_found() -> None:
    machine = TransactionMachine(3)
    for call in (
        lambda: machine.end(7, COMMIT),
        lambda: machine.add_partitions(7, [T]),
        lambda: machine.add_subscriptions(7, [S]),
        lambda: machine.owner(7),
    ):
        assert code_of(call) is ServerError.TRANSACTION_NOT_FOUND


def test_one_more_than_there_may_be_is_refused_until_one_has_ended() -> None:
    book = Book(active_max=2)
    first, _ = book.open(), book.open()
    assert code_of(book.machine.open, None, 1, 0) is ServerError.TOO_MANY_REQUESTS
    book.end(first, ABORT)
    assert code_of(book.machine.open, None, 1, 0) is ServerError.TOO_MANY_REQUESTS
    book.finish(first)
    book.open()


def test_those_whose_time_is_up_are_told_once_and_only_while_they_are_open() -> None:
    book = Book()
    late, soon, ended = book.open(timeout_ms=5000), book.open(timeout_ms=10), book.open(timeout_ms=10)
    book.end(ended, COMMIT)
    assert book.machine.next_due_ms() == 10
    assert book.machine.due(9) == []
    assert book.machine.due(10) == [soon]
    assert book.machine.due(10) == []
    assert book.machine.due(5000) == [late]


def test_the_heap_of_due_times_and_the_memory_of_the_ended_stay_small() -> None:
    book = Book()
    for _ in range(ENDED_MAX + 5000):
        record = book.machine.open(None, 1 << 40, 0)
        for each in (record, book.machine.end(record.least, ABORT), book.machine.finish(record.least)):
            assert each is not None
            book.machine.stored(each, Place(Position(1, 0)))
        book.machine.ended(record.least)
    assert len(book.machine._due) <= 1001
    assert len(book.machine._ended) == ENDED_MAX


def test_the_low_water_mark_is_below_the_oldest_that_has_not_ended() -> None:
    book = Book()
    first, second = book.open(), book.open()
    assert book.machine.low_water_mark == -1
    book.end(second, COMMIT)
    book.finish(second)
    assert book.machine.low_water_mark == -1
    third = book.open()
    book.end(first, ABORT)
    book.finish(first)
    assert book.machine.low_water_mark == third - 1 == 1
    book.end(third, ABORT)
    book.finish(third)
    assert book.machine.low_water_mark == 0, "as Apache says it"


def test_batches_that_apache_wrote_are_read() -> None:
    records: list[Record] = [Opened(5, 100, 1000, "me"), StatusChanged(5, TxnStatus.OPEN, TxnStatus.ABORTING)]
    entries = [encode(3, record, 5, 0) for record in records]
    body = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in entries)
    assert decode(memoryview(b"\x0e\x01\x00\x01" + body)) == [(record, 5) for record in records]


def test_an_end_names_those_who_had_ended_it_otherwise_in_a_record_that_apache_reads() -> None:
    last = StatusChanged(5, TxnStatus.COMMITTING, TxnStatus.COMMITTED, ("t",), (TxnSubscription("t", "s"),))
    assert decode(memoryview(encode(3, last, 5, 0))) == [(last, 5)]
    entry = TransactionMetadataEntry.FromString(encode(3, last, 5, 0))
    assert entry.metadata_op == TransactionMetadataEntry.UPDATE
    assert (entry.expected_status, entry.new_status) == (1, 2)


class Twin:
    """Naive twin after PIP-31: for each number its status and its participants."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[TxnStatus, set[str], set[TxnSubscription]]] = {}

    def does(self, what: str, least: int, other: int) -> ServerError | None:
        """Returns the refusal that the machine should give."""
        if least not in self.known:
            return ServerError.TRANSACTION_NOT_FOUND
        status, partitions, subscriptions = self.known[least]
        if what in ACTIONS and status.action is ACTIONS[what]:
            return None
        if status.has_ended:
            return ServerError.TRANSACTION_NOT_FOUND
        if status is not TxnStatus.OPEN:
            return ServerError.INVALID_TXN_STATUS
        if what == "partition":
            partitions.add(f"t{other}")
        elif what == "subscription":
            subscriptions.add(TxnSubscription("t", f"s{other}"))
        else:
            new = TxnStatus.COMMITTING if what == "commit" else TxnStatus.ABORTING
            self.known[least] = (new, partitions, subscriptions)
        return None

    def finishes(self, least: int) -> None:
        status, partitions, subscriptions = self.known[least]
        self.known[least] = (TxnStatus(status + 1), partitions, subscriptions)

    def active(self) -> list[tuple[object, ...]]:
        return [(least, *each) for least, each in self.known.items() if not each[0].has_ended]


ACTIONS = {"commit": COMMIT, "abort": ABORT}


def does(book: Book, what: str, least: int, other: int) -> ServerError | None:
    machine = book.machine
    try:
        if what == "partition":
            book.write(machine.add_partitions(least, [f"t{other}"]))
        elif what == "subscription":
            book.write(machine.add_subscriptions(least, [TxnSubscription("t", f"s{other}")]))
        else:
            book.end(least, ACTIONS[what])
    except BrokerError as refusal:
        return refusal.code
    return None


steps = st.lists(
    st.tuples(
        st.sampled_from(["open", "partition", "subscription", "commit", "abort", "finish"]),
        st.integers(0, 5),
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(steps)
@settings(max_examples=300, deadline=None)
def test_any_course_is_the_naive_twins_and_the_log_gives_it_back_from_any_place_that_keeps_what_is_needed(
    course: list[tuple[str, int, int]],
) -> None:
    book, twin = Book(), Twin()
    for what, which, other in course:
        if what == "open":
            least = book.open(timeout_ms=which, now_ms=other)
            assert least not in twin.known, "never given twice"
            twin.known[least] = (TxnStatus.OPEN, set(), set())
        elif what != "finish":
            assert does(book, what, which, other) is twin.does(what, which, other)
        elif book.machine.is_ending(which):
            book.finish(which)
            twin.finishes(which)
    now = shape(book.machine)
    assert [each[:4] for each in now] == twin.active()
    gone = {place.position.entry_id for place in book.let_go}
    needed = next((entry_id for entry_id in range(len(book.log)) if entry_id not in gone), len(book.log))
    for start in range(needed + 1):
        again = book.replayed(start)
        assert shape(again) == now
        assert start == len(book.log) or again.last_sequence == book.machine.last_sequence


def test_partitions_and_subscriptions_of_a_transaction_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.transaction.machine.PARTICIPANTS_MAX", 2)
    book = Book()
    least = book.open()
    book.write(book.machine.add_partitions(least, [T]))
    book.write(book.machine.add_subscriptions(least, [S]))
    assert code_of(book.machine.add_partitions, least, ["persistent://public/default/u"]) is ServerError.NOT_ALLOWED


def test_a_transaction_that_its_log_opens_twice_keeps_who_took_part() -> None:
    book = Book()
    least = book.open()
    book.write(book.machine.add_partitions(least, [T]))
    found = book.replayed()
    again = Place(Position(1, 2))
    assert found.replay(Opened(least, 0, 1000, None), again, least) == [again], "it is not needed"
    assert set(found.get(least).partitions) == {T}
