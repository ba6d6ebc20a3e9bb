"""Guarantees of the sink against a real standalone: attempts die, drivers come back, brokers go.

Without Spark: tasks and commits are functions of their options, their place and their rows.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from pipeline.pyspark_pulsar.client.admin import ledgers_of
from pipeline.pyspark_pulsar.errors import NoSuchTopic, Refused
from pipeline.pyspark_pulsar.sink import publisher
from pipeline.pyspark_pulsar.sink.commits import batch_commits as commits
from pipeline.pyspark_pulsar.sink.commits.commit_log import CommitLog, log_topic
from pipeline.pyspark_pulsar.sink.commits.commit_records import Decision
from pipeline.pyspark_pulsar.sink.commits.transactions import TransactionClient
from pipeline.pyspark_pulsar.sink.entries import Entry
from pipeline.pyspark_pulsar.sink.errors import (
    BatchChanged,
    Interrupted,
    NotDeduplicated,
    TakenOver,
    TransactionLost,
    WrongFrame,
)
from pipeline.pyspark_pulsar.sink.publisher import Publisher
from pipeline.pyspark_pulsar.sink.task import SinkTask, TaskPlace
from tests.clients.python_client import quiet_client, until
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.sink.sink_attempts import Attempt, Died, dying, frame, numbers, options, ran
from tests.pipeline.written_topics import made, messages, values
from wire.frames import PING

pytestmark = pytest.mark.clients


# ---- Deduplication


def test_rows_of_a_batch_that_is_written_again_are_there_once_wherever_its_first_attempt_died(
    standalone: Ready, topic: str
) -> None:
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    for batch in range(3):
        first = batch * 95
        with pytest.raises(Died):
            SinkTask(chosen, TaskPlace("q", batch, 0)).run(dying(frame(first, 35)))
        done = SinkTask(chosen, TaskPlace("q", batch, 0)).run([frame(first, 60), frame(first + 60, 35)])
        assert done.rows == 95
        again = SinkTask(chosen, TaskPlace("q", batch, 0)).run([frame(first, 95)])
        assert (again.rows, again.repeated) == (95, 95)
    assert values(standalone, topic) == numbers(285)


def test_partitions_and_tasks_are_deduplicated_each_by_itself(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic, partitions=3, deduplicates=True), "deduplication")
    with pytest.raises(Died):
        SinkTask(chosen, TaskPlace("q", 0, 1)).run(dying(frame(100, 50)))
    ran(chosen, "q", 0, frame(0, 100), frame(100, 100))
    ran(chosen, "q", 0, frame(0, 100), frame(100, 100))
    found = [each for partition in range(3) for each in values(standalone, f"{topic}-partition-{partition}")]
    assert sorted(found, key=int) == numbers(200)


def test_a_batch_that_lost_rows_since_it_was_first_written_is_an_error_and_no_loss(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    ran(chosen, "q", 0, frame(0, 50))
    with pytest.raises(BatchChanged, match="more than 49 rows, and now has 20"):
        ran(chosen, "q", 0, frame(0, 20))


def test_an_old_batch_after_a_newer_one_is_an_error_and_no_loss(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    ran(chosen, "q", 4, frame(0, 10))
    with pytest.raises(BatchChanged, match="later batch"):
        ran(chosen, "q", 3, frame(0, 10))


def test_a_topic_that_does_not_deduplicate_is_refused_with_the_remedy(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic), "deduplication")
    with pytest.raises(NotDeduplicated, match="set-deduplication"):
        ran(chosen, "q", 0, frame(0, 10))
    assert values(standalone, topic) == []


# ---- Transactions


def test_an_attempt_that_dies_leaves_nothing_and_nothing_is_there_before_the_commit(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic), "transactions")
    with pytest.raises(Died):
        SinkTask(chosen, TaskPlace(topic.rpartition("/")[2], 0, 0)).run(dying(frame(0, 30)))
    assert values(standalone, topic) == []
    commits.commit(ran(chosen, "", 0, frame(0, 30), frame(30, 30)), chosen)
    assert sorted(values(standalone, topic), key=int) == numbers(60)


@pytest.mark.parametrize("committed", [0, 1, 2])
def test_a_driver_that_died_after_the_decision_finishes_that_one_and_no_other(
    standalone: Ready, topic: str, committed: int
) -> None:
    """With none, one or both of the two transactions committed before it died."""
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    first = ran(chosen, write_id, 7, frame(0, 20), frame(20, 20))
    written = tuple(each.written for each in first if each.written is not None)
    with CommitLog(log_topic(write_id, chosen.commits_namespace), chosen.access) as log:
        log.write(Decision(7, written))
    for each in written[:committed]:
        client = TransactionClient(each.txn_id.most, chosen.access)
        client.end(each.txn_id, commits=True)
        client.close()
    commits.commit(ran(chosen, write_id, 7, frame(20, 20), frame(0, 20)), chosen)  # the rows come in another order
    commits.commit(ran(chosen, write_id, 8, frame(40, 20)), chosen)
    assert sorted(values(standalone, topic), key=int) == numbers(60)


def test_a_batch_that_is_decided_is_not_aborted_and_one_that_is_not_is(standalone: Ready, topic: str) -> None:
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    first = ran(chosen, write_id, 0, frame(0, 20))
    with CommitLog(log_topic(write_id, chosen.commits_namespace), chosen.access) as log:
        log.write(Decision(0, tuple(each.written for each in first if each.written is not None)))
    commits.abort(first, chosen, 0)
    commits.commit(ran(chosen, write_id, 0, frame(0, 20)), chosen)
    commits.abort(ran(chosen, write_id, 1, frame(20, 20)), chosen, 1)
    assert values(standalone, topic) == numbers(20)


def test_a_decided_transaction_that_was_aborted_is_told_and_not_taken_for_committed(standalone: Ready, topic: str) -> None:
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    first = ran(chosen, write_id, 0, frame(0, 20))
    with CommitLog(log_topic(write_id, chosen.commits_namespace), chosen.access) as log:
        log.write(Decision(0, tuple(each.written for each in first if each.written is not None)))
    written = first[0].written
    assert written is not None
    client = TransactionClient(written.txn_id.most, chosen.access)
    client.end(written.txn_id, commits=False)  # as its coordinator does when its time is up
    client.close()
    with pytest.raises(TransactionLost, match=f"{topic}: a transaction of batch 0"):
        commits.commit(ran(chosen, write_id, 0, frame(0, 20)), chosen)


# ---- Two attempts of one task at once


def test_a_second_attempt_waits_for_the_first_one_and_sends_nothing_again(standalone: Ready, topic: str) -> None:
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    one = Attempt(chosen, TaskPlace("q", 0, 0), frame(0, 50), frame(50, 50))
    one.wrote()
    other = Attempt(chosen, TaskPlace("q", 0, 0), frame(0, 50), frame(50, 50))
    assert one.go_on().repeated == 0
    other.wrote()
    assert (again := other.go_on()).rows == again.repeated == 100
    assert values(standalone, topic) == numbers(100)


@pytest.fixture
def publishers(monkeypatch: pytest.MonkeyPatch) -> list[Publisher]:
    """Publishers that have their name, in the order in which they got it."""
    found: list[Publisher] = []
    begin: Any = Publisher.__init__

    def noted(self: Publisher, *words: Any) -> None:
        begin(self, *words)
        found.append(self)

    monkeypatch.setattr(Publisher, "__init__", noted)
    return found


def test_an_attempt_that_was_asked_for_a_sign_of_life_goes_on_with_its_rows(
    standalone: Ready, topic: str, publishers: list[Publisher]
) -> None:
    """The broker sends a ping because another attempt wants the name; nothing else comes, as all rows have their receipts."""
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    one = Attempt(chosen, TaskPlace("q", 0, 0), frame(0, 50), frame(50, 50))
    one.wrote()
    publishers[0].flush()
    connected = publishers[0]._connection._socket
    other = Attempt(chosen, TaskPlace("q", 0, 0), frame(0, 50), frame(50, 50))
    until(lambda: select.select([connected], [], [], 0)[0] != [], 60)
    assert connected.recv(len(PING), socket.MSG_PEEK) == PING
    try:
        assert one.go_on(seconds_max=60).rows == 100
    finally:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)  # an attempt that waits for ever would keep the tests from ending
    assert other.go_on().repeated == 100
    assert values(standalone, topic) == numbers(100)


def test_an_attempt_whose_name_was_taken_over_ends_and_loses_nothing(
    standalone: Ready, topic: str, publishers: list[Publisher]
) -> None:
    """The broker dropped the producer, as it does when a producer answers no pings; the other one cut the rows elsewhere."""
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    one = Attempt(chosen, TaskPlace("q", 0, 0), frame(0, 50), frame(50, 50))
    one.wrote()
    publishers[0].flush()
    publishers[0]._connection._socket.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Died):  # the other one has other batches, and does not come to the end either
        SinkTask(chosen, TaskPlace("q", 0, 0)).run(dying(frame(0, 63)))
    with pytest.raises(TakenOver, match=f"{topic}: another attempt of this task writes as producer q-0"):
        one.go_on()
    SinkTask(chosen, TaskPlace("q", 0, 0)).run([frame(0, 100)])
    assert values(standalone, topic) == numbers(100)


def test_an_attempt_that_does_not_get_its_name_ends_and_says_who_has_it(
    standalone: Ready, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options(standalone, made(standalone, topic, deduplicates=True), "deduplication")
    having: Any = Publisher._having_name
    with closing(quiet_client(standalone.broker_url)) as client, monkeypatch.context() as patched:
        client.create_producer(topic, producer_name="q-0")
        patched.setattr(Publisher, "_having_name", lambda self, seconds: having(self, seconds / 1000))
        with pytest.raises(TakenOver, match=r"Producer with name 'q-0' is already connected .* waited for 0\.6 s"):
            ran(chosen, "q", 0, frame(0, 100))
    ran(chosen, "q", 0, frame(0, 100))
    assert values(standalone, topic) == numbers(100)


@pytest.mark.parametrize("guarantee", ["at-least-once", "deduplication"])
def test_without_transactions_nothing_is_noted(standalone: Ready, topic: str, guarantee: str) -> None:
    chosen, write_id = options(standalone, made(standalone, topic, deduplicates=True), guarantee), topic.rpartition("/")[2]
    commits.commit(ran(chosen, write_id, 0, frame(0, 20)), chosen)
    with pytest.raises(NoSuchTopic):
        ledgers_of(log_topic(write_id, chosen.commits_namespace), chosen.access)


# ---- Brokers that go away


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, ("transactionCoordinatorEnabled=true",)) as server:
        server.start()
        yield server


def killing(server: ServerProcess, *frames: Any) -> Iterator[Any]:
    """Kills the broker between frames, while batches are on their way, and starts it again."""
    for number, each in enumerate(frames):
        if number:
            server.kill()
            server.start()
        yield each


def test_a_task_goes_on_where_it_was_after_its_broker_was_killed(own: ServerProcess, topic: str) -> None:
    assert own.ready is not None
    server = own.ready
    deduplicating, plain = made(server, f"{topic}-d", deduplicates=True), made(server, f"{topic}-p")
    frames = [frame(0, 300), frame(300, 300), frame(600, 300)]
    done = SinkTask(options(server, deduplicating, "deduplication"), TaskPlace("q", 0, 0)).run(killing(own, *frames))
    assert done.rows == 900
    assert values(server, deduplicating) == numbers(900)
    SinkTask(options(server, plain, "at-least-once"), TaskPlace("q", 0, 0)).run(killing(own, *frames))
    assert set(values(server, plain)) == set(numbers(900))


def test_with_transactions_a_killed_broker_costs_the_attempt_unless_the_topic_deduplicates(
    own: ServerProcess, topic: str
) -> None:
    assert own.ready is not None
    server = own.ready
    plain, deduplicating = made(server, f"{topic}-p"), made(server, f"{topic}-d", deduplicates=True)
    frames = [frame(0, 300), frame(300, 300)]
    chosen = options(server, plain, "transactions")
    with pytest.raises(Interrupted, match=f"{plain}: .*set-deduplication"):
        SinkTask(chosen, TaskPlace("a", 0, 0)).run(killing(own, *frames))
    commits.commit([SinkTask(chosen, TaskPlace("a", 0, 0)).run(frames)], chosen)
    assert values(server, plain) == numbers(600)
    chosen = options(server, deduplicating, "transactions")
    commits.commit([SinkTask(chosen, TaskPlace("d", 0, 0)).run(killing(own, *frames))], chosen)
    assert values(server, deduplicating) == numbers(600)


# ---- Bad input


def test_a_topic_that_is_not_there_is_named_and_can_be_made(standalone: Ready, topic: str) -> None:
    with pytest.raises(NoSuchTopic, match=f"{topic}: .*createTopic=true"):
        ran(options(standalone, topic, "at-least-once"), "q", 0, frame(0, 1))
    ran(options(standalone, topic, "at-least-once", createTopic="true"), "q", 0, frame(0, 1))
    assert values(standalone, topic) == ["0"]


def test_a_message_that_no_broker_takes_is_named_before_it_is_sent(standalone: Ready, topic: str) -> None:
    large = pyarrow.RecordBatch.from_pylist([{"value": b"small"}, {"value": bytes(6 << 20)}])
    with pytest.raises(WrongFrame, match=f"{topic}: a message of 62915.. bytes"):
        ran(options(standalone, made(standalone, topic), "at-least-once"), "q", 0, large)


def test_a_schema_that_a_topic_does_not_take_is_refused_by_name(standalone: Ready, topic: str) -> None:
    def structs(kind: Any) -> Any:
        return pyarrow.RecordBatch.from_arrays([pyarrow.array([{"a": None}], pyarrow.struct([("a", kind)]))], ["value"])

    chosen = options(standalone, made(standalone, topic), "at-least-once", valueSchema="avro")
    ran(chosen, "q", 0, structs(pyarrow.int64()))
    assert messages(standalone, topic, ("value", "schema_version")) == [{"value": b"\x00", "schema_version": 0}]
    with pytest.raises(Refused, match=f"{topic}: .*IncompatibleSchema"):
        ran(chosen, "q", 0, structs(pyarrow.string()))


def test_the_pending_bytes_of_a_publisher_are_bounded(standalone: Ready, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = options(standalone, made(standalone, topic), "at-least-once", pendingBytes="2000")
    most = 0
    put: Any = Publisher._put

    def counted(self: Publisher, connection: Any, entry: Entry) -> None:
        nonlocal most
        most = max(most, sum(len(each.section) for each in self._pending))
        put(self, connection, entry)

    monkeypatch.setattr(publisher.Publisher, "_put", counted)
    ran(chosen, "q", 0, frame(0, 2000))
    assert 2000 < most < 3000
    assert values(standalone, topic) == numbers(2000)
