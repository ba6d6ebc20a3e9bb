"""Transactions that tasks leave open, killed or second: no reader waits for them longer than the write takes."""

from contextlib import suppress

import pytest

from pipeline.pyspark_pulsar.client.admin import ledgers_of
from pipeline.pyspark_pulsar.errors import NoSuchTopic, Refused
from pipeline.pyspark_pulsar.sink.commits import batch_commits as commits
from pipeline.pyspark_pulsar.sink.commits.commit_log import CommitLog, log_topic
from pipeline.pyspark_pulsar.sink.commits.commit_records import Decision
from pipeline.pyspark_pulsar.sink.task import SinkTask, TaskPlace
from tests.clients.server_process import Ready
from tests.pipeline.sink.sink_attempts import Attempt, frame, has_ended, numbers, options, ran
from tests.pipeline.written_topics import access, made, values

pytestmark = pytest.mark.clients


def test_transactions_of_attempts_that_do_not_count_are_aborted_with_the_commit(standalone: Ready, topic: str) -> None:
    """One ran to its end and came second, one was killed: readers do not wait until their time is up."""
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    ran(chosen, write_id, 0, frame(0, 20))
    killed = Attempt(chosen, TaskPlace(write_id, 0, 0), frame(0, 20))
    killed.wrote()
    commits.commit(ran(chosen, write_id, 0, frame(0, 20)), chosen)
    assert values(standalone, topic) == numbers(20)
    with suppress(Refused):  # nothing that it does now counts
        killed.go_on()
    commits.commit(ran(chosen, write_id, 1, frame(20, 20)), chosen)
    assert values(standalone, topic) == numbers(40)


def test_a_driver_that_died_before_it_aborted_the_others_does_so_when_it_comes_back(standalone: Ready, topic: str) -> None:
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    ran(chosen, write_id, 0, frame(0, 20))
    first = ran(chosen, write_id, 0, frame(0, 20))
    with CommitLog(log_topic(write_id, chosen.commits_namespace), chosen.access) as log:
        log.write(Decision(0, tuple(each.written for each in first if each.written is not None)))
    commits.commit(ran(chosen, write_id, 0, frame(0, 20)), chosen)
    assert values(standalone, topic) == numbers(20)
    with CommitLog(log_topic(write_id, chosen.commits_namespace), chosen.access) as log:
        assert log.last is not None
        assert len(log.opened) == 1  # what came before the decision is let go of


def test_a_write_that_is_not_wanted_leaves_no_transaction_open(standalone: Ready, topic: str) -> None:
    chosen, write_id = options(standalone, made(standalone, topic), "transactions"), topic.rpartition("/")[2]
    ran(chosen, write_id, 0, frame(0, 20))  # an attempt of which the driver knows nothing
    commits.abort(ran(chosen, write_id, 0, frame(0, 20)), chosen, 0)
    assert values(standalone, topic) == []


def is_noted(server: Ready, name: str) -> bool:
    try:
        return bool(ledgers_of(log_topic(name, "public/default"), access(server)))
    except NoSuchTopic:
        return False


@pytest.mark.parametrize("commits_it", [True, False])
def test_a_write_without_a_name_leaves_no_transaction_open_and_no_topic(
    standalone: Ready, topic: str, commits_it: bool
) -> None:
    """Notes alone tell of killed tasks: readers do not wait until the transactions time out."""
    chosen, name = options(standalone, made(standalone, topic), "transactions"), f"unnamed-{topic.rpartition('/')[2]}"
    killed = Attempt(chosen, TaskPlace("", 0, 0, name), frame(0, 20))
    killed.wrote()
    assert is_noted(standalone, name)
    done = [SinkTask(chosen, TaskPlace("", 0, 0, name)).run([frame(0, 20)])]
    if commits_it:
        commits.commit(done, chosen, name)
    else:
        commits.abort(done, chosen, 0, name)
    assert values(standalone, topic) == numbers(20 if commits_it else 0)
    assert not is_noted(standalone, name)
    assert has_ended(killed.go_on(), chosen)
    commits.abort([], chosen, 0, "unnamed-that-noted-nothing")


@pytest.mark.parametrize("write_id", ["", "named"])
def test_a_write_of_which_all_tasks_were_killed_leaves_no_transaction_open(
    standalone: Ready, topic: str, write_id: str
) -> None:
    name = f"{write_id or 'unnamed'}-{topic.rpartition('/')[2]}"
    chosen = options(standalone, made(standalone, topic), "transactions", **({"writeId": name} if write_id else {}))
    killed = Attempt(chosen, TaskPlace(name, 0, 0) if write_id else TaskPlace("", 0, 0, name), frame(0, 20))
    killed.wrote()
    commits.abort([], chosen, 0, "" if write_id else name)
    assert values(standalone, topic) == []
    assert has_ended(killed.go_on(), chosen)


def test_a_write_without_a_name_is_done_also_where_nothing_can_be_noted(standalone: Ready, topic: str) -> None:
    made(standalone, topic)
    chosen = options(standalone, topic, "transactions", commitsNamespace="public/not-there", pollTimeoutMs="1000")
    commits.commit([SinkTask(chosen, TaskPlace("", 0, 0, "unnamed-x")).run([frame(0, 20)])], chosen, "unnamed-x")
    assert values(standalone, topic) == numbers(20)
