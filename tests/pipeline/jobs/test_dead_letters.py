"""dead-letters, on topics that Apache's client filled by its dead letter policy: causes, and each letter redriven once."""

import io
from contextlib import closing
from pathlib import Path

import pulsar
import pytest

from pipeline.pyspark_pulsar.jobs import command_line
from pipeline.pyspark_pulsar.jobs.letters.held_letters import HeldLetters, left
from pipeline.pyspark_pulsar.jobs.progress import Progress
from pipeline.pyspark_pulsar.options import parse_options
from pipeline.pyspark_pulsar.positions import Place
from tests.clients.python_client import ask, publish, published, quiet_client, receive, until
from tests.clients.server_process import Ready
from tests.pipeline.job_process import JobProcess, run_job, urls, written_report
from tests.pipeline.jobs.dead_letter_client import dead_letters
from tests.pipeline.written_topics import made, messages, stats

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a job takes minutes
PROPERTIES = ("value", "key", "properties")


def job(server: Ready, letters: str, *more: str) -> list[str]:
    return ["dead-letters", *urls(server), "--topics", letters, *more]


def test_letters_of_a_client_are_told_by_cause_and_go_back_once(standalone: Ready, topic: str, tmp_path: Path) -> None:
    topic = dead_letters(standalone, topic, 9)
    letters = f"{topic}-work-DLQ"
    told = run_job(job(standalone, letters, "--report", str(tmp_path)))
    assert (told.code, told.facts["letters"], told.facts["causes"]) == (1, 9, 2), told.complaint
    timeout, customer = written_report(tmp_path, "dead-letters")["tables"]["by cause"]
    assert (timeout["cause"], timeout["letters"], timeout["topic"]) == ("timeout after # ms", 6, topic)
    assert (customer["cause"], customer["letters"], customer["subscription"]) == ("no customer #", 3, "work")

    chosen = job(standalone, letters, "--redrive", "--where", "cause~^timeout")
    planned = run_job([*chosen, "--dry-run"])
    assert (planned.code, planned.facts["would be sent"]) == (0, 6)
    assert len(messages(standalone, topic)) == 9
    done = run_job(chosen)
    assert (done.code, done.facts["sent"], done.facts["entries acknowledged"]) == (0, 6, 6), done.complaint
    found = messages(standalone, topic, PROPERTIES)
    back = found[9:]
    assert [each["value"] for each in back] == [b"m1", b"m2", b"m4", b"m5", b"m7", b"m8"]
    assert [each["key"] for each in back] == [b"k1", b"k2", b"k0", b"k1", b"k3", b"k0"]
    for original, each in zip([found[number] for number in (1, 2, 4, 5, 7, 8)], back, strict=True):
        own = dict(each["properties"])
        assert own.pop("REDRIVEN_FROM").startswith(f"{letters} ")
        assert own == dict(original["properties"])
    # the others are still there, and nothing is twice
    assert run_job(chosen).facts["sent"] == 0
    assert run_job(job(standalone, letters)).facts["letters"] == 3
    rest = run_job(job(standalone, letters, "--redrive"))
    assert (rest.code, rest.facts["sent"]) == (0, 3), rest.complaint
    assert run_job(job(standalone, letters)).code == 0
    assert sorted(each["value"] for each in messages(standalone, topic)[15:]) == [b"m0", b"m3", b"m6"]


def test_a_redrive_that_is_killed_again_and_again_sends_each_letter_once(standalone: Ready, topic: str) -> None:
    """A letter an entry. It is killed when the original topic has got a few more of them."""
    made(standalone, topic, deduplicates=True)
    letters = made(standalone, f"{topic}-work-DLQ")
    count = 600
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(letters, batching_enabled=False, block_if_queue_full=True)
        for number in range(count):
            producer.send_async(f"m{number}".encode(), lambda result, message_id: None, properties={"REAL_TOPIC": topic})
        producer.flush()
    finally:
        client.close()
    words = job(standalone, letters, "--redrive", "--sink-option", "pulsar.producer.batchingMaxMessages=1")
    path = topic.replace("://", "/")

    def sent() -> int:
        return int(stats(standalone, path)["msgInCounter"])

    def left() -> int:
        return int(
            stats(standalone, letters.replace("://", "/"))["subscriptions"].get("redrive", {"msgBacklog": count})["msgBacklog"]
        )

    for more in (1, 70, 150):
        goal = sent() + more
        with JobProcess(words) as running:
            until(lambda: sent() >= goal or running.has_ended(), 300)  # noqa: B023 - asked before the loop goes on
            running.kill()
        # what is acknowledged is there
        assert count - left() <= sent()
    ended = run_job(words)
    assert ended.code == 0, ended.complaint
    assert [each["value"].decode() for each in messages(standalone, topic)] == [f"m{number}" for number in range(count)]
    assert left() == 0


def test_letters_go_to_another_topic_where_the_original_does_not_deduplicate(standalone: Ready, topic: str) -> None:
    original, other = made(standalone, topic), made(standalone, f"{topic}-other", partitions=2, deduplicates=True)
    letters = made(standalone, f"{topic}-work-DLQ")
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(letters, batching_enabled=False)
        for number in range(4):
            producer.send(f"m{number}".encode(), properties={"REAL_TOPIC": original} if number else {})
        refused = run_job(job(standalone, letters, "--redrive", "--where", "value=m1"))
        assert refused.code == 2
        assert f"{original}: deduplication is" in refused.complaint
        assert run_job(job(standalone, letters, "--redrive", "--to", other, "--where", "value!=m3")).facts["sent"] == 3
        lost = run_job(job(standalone, letters, "--redrive", "--guarantee", "at-least-once"))
        assert (lost.code, lost.facts["sent"]) == (0, 1), lost.complaint
        consumer = client.subscribe(other, "all", initial_position=pulsar.InitialPosition.Earliest)
        assert sorted(receive(consumer, 3)) == ["m0", "m1", "m2"]
        assert [each["value"] for each in messages(standalone, original)] == [b"m3"]
        producer.send(b"m4")
    finally:
        client.close()
    unknown = run_job(job(standalone, letters, "--redrive"))
    assert unknown.code == 2
    assert f"{letters} " in unknown.complaint
    assert "REAL_TOPIC" in unknown.complaint


def test_letters_outside_of_the_range_are_left_though_others_of_their_batch_are_sent(standalone: Ready, topic: str) -> None:
    """Ranges by index and by time; ten letters are one entry, which is acknowledged as a whole."""
    to, letters = made(standalone, topic, deduplicates=True), made(standalone, f"{topic}-work-DLQ")
    published(standalone, letters, 30, batching=True)
    sending = job(standalone, letters, "--redrive", "--to", to)
    index = ["--option", "startingIndex=15"]
    first = run_job([*sending, *index])
    assert (first.code, first.facts["sent"], first.facts["letters"]) == (0, 15, 15), first.complaint
    times = [each["publish_time"].timestamp() for each in messages(standalone, letters, ("publish_time",))]
    past = run_job([*sending, "--option", f"endingTime={round(min(times) * 1000)}"])
    assert (past.code, past.facts["sent"], past.facts["entries acknowledged"]) == (0, 0, 0), past.complaint
    assert run_job([*sending, *index]).facts["sent"] == 0  # what of a batch was sent is known
    rest = run_job([*sending, "--option", "endingIndex=15"])
    assert (rest.code, rest.facts["sent"]) == (0, 15), rest.complaint
    assert sorted(each["value"].decode() for each in messages(standalone, to)) == sorted(f"m{each}" for each in range(30))


def test_letters_of_a_batch_that_were_acknowledged_are_not_sent(standalone: Ready, options: dict[str, str], topic: str) -> None:
    """Somebody looked at them by hand, on the job's own subscription."""
    to, letters = made(standalone, topic, deduplicates=True), made(standalone, f"{topic}-work-DLQ")
    with closing(quiet_client(standalone.broker_url)) as client:
        consumer = client.subscribe(letters, "redrive", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
        publish(client, letters, 10, batching=True)
        for number in range(10):
            message = consumer.receive(timeout_millis=60_000)
            if number not in (1, 8):
                consumer.acknowledge(message)
        consumer.close()
    source = parse_options({**options, "topic": letters}, is_stream=False)
    until(lambda: list(left(letters, "redrive", source).parts.words) == [0b100000010])
    assert run_job(job(standalone, letters)).facts["letters"] == 2
    sent = run_job(job(standalone, letters, "--redrive", "--to", to))
    assert (sent.code, sent.facts["sent"], sent.facts["entries acknowledged"]) == (0, 2, 1), sent.complaint
    assert [each["value"] for each in messages(standalone, to)] == [b"m1", b"m8"]
    assert left(letters, "redrive", source).ranges == []


def test_a_redrive_tells_how_many_entries_are_looked_at(standalone: Ready, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One topic alone may have many entries."""
    to, letters = made(standalone, topic, deduplicates=True), made(standalone, f"{topic}-work-DLQ")
    published(standalone, letters, 5)
    terminal = io.StringIO()
    monkeypatch.setattr(command_line, "Progress", lambda what: Progress(what, terminal, always=True))
    ended = run_job(job(standalone, letters, "--redrive", "--to", to))
    assert ended.code == 0, ended.complaint
    assert terminal.getvalue().endswith("] 5/5\n")


def test_letters_before_those_that_another_choice_sent_are_no_repeats(standalone: Ready, topic: str) -> None:
    """Another property names the cause: the same condition then selects others."""
    to, letters = made(standalone, topic, deduplicates=True), made(standalone, f"{topic}-work-DLQ")
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(letters, batching_enabled=False)
        producer.send(b"first", properties={"b": "full"})
        producer.send(b"second", properties={"a": "full"})
    finally:
        client.close()
    for cause, value in (("a", b"second"), ("b", b"first")):
        ended = run_job(job(standalone, letters, "--redrive", "--to", to, "--cause", cause, "--where", "cause=full"))
        assert (ended.code, ended.facts["sent"]) == (0, 1), ended.complaint
        assert messages(standalone, to)[-1]["value"] == value


def test_arguments_that_a_redrive_cannot_honour_are_refused(standalone: Ready, topic: str) -> None:
    letters = made(standalone, f"{topic}-work-DLQ")
    for words, said in (
        (["--option", "startingOffsets=latest"], "option startingOffsets: "),
        (["--option", "unacknowledgedBy=s"], "option unacknowledgedBy=s: "),
        (["--guarantee", "transactions"], "--guarantee transactions: expected deduplication or at-least-once"),
        (["--subscription", ""], "--subscription: a name"),
        (["--to", letters], f"--to {letters}: the letters are there already"),
    ):
        ended = run_job(job(standalone, letters, "--redrive", *words))
        assert ended.code == 2
        assert said in ended.complaint


def test_letters_that_somebody_else_holds_are_left_alone(standalone: Ready, topic: str) -> None:
    letters = made(standalone, f"{topic}-work-DLQ")
    client = quiet_client(standalone.broker_url)
    try:
        client.create_producer(letters).send(b"m", properties={"REAL_TOPIC": topic})
        client.subscribe(letters, "redrive", initial_position=pulsar.InitialPosition.Earliest)
        busy = run_job(job(standalone, letters, "--redrive", "--option", "pollTimeoutMs=3000"))
    finally:
        client.close()
    assert busy.code == 2
    assert letters in busy.complaint
    assert run_job(["dead-letters", *urls(standalone), "--topics", f"{letters}-absent"]).code == 2


def test_acknowledgements_outlive_a_topic_that_moves(standalone: Ready, options: dict[str, str], topic: str) -> None:
    """The broker closes the topic, and with it the consumer, while letters are on their way."""
    made(standalone, topic)
    published(standalone, topic, 5)
    source = parse_options({**options, "topic": topic, "pollTimeoutMs": "300000"}, is_stream=False)
    with HeldLetters(topic, "redrive", source) as held:
        [ledger] = {each.ledger_id for each in left(topic, "redrive", source).ranges}
        held.acknowledge([Place(ledger, 1)])
        ask(standalone, f"{topic.replace('://', '/')}/unload", {}, "PUT")
        held.acknowledge([Place(ledger, 3)])
        ranges = left(topic, "redrive", source).ranges
        entries = [entry for each in ranges for entry in range(each.first_entry_id, each.end_entry_id)]
        assert entries == [0, 2, 4]
