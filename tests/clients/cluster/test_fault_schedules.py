"""Schedules of faults depend on their seed alone; the checker notices whatever is lost, made up or out of order.

A member that ended says whether that was on purpose.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clients.cluster.faults.checker import Message, Topic, faults_of, message_of
from tests.clients.cluster.faults.members import Member
from tests.clients.cluster.faults.network import Network
from tests.clients.cluster.faults.schedule import LASTS_MS, SHAPE, Fault, Kind, Schedule, generated, parsed

SENT = {"p": 40, "q": 40}


def test_a_seed_is_a_schedule_for_ever() -> None:
    """The seed of a failure can be run again after anything else has changed."""
    assert str(generated(7, 6000, 4)) == GOLDEN


GOLDEN = (
    "871+1985 unload-storm; "
    "1204+576 split-storm; "
    "1379+3078 zookeeper-quorum-loss zookeeper-1 zookeeper-2 zookeeper-3; "
    "2212+2276 reset broker-2"
)


@given(st.integers(), st.integers(2000, 60_000), st.integers(0, 20))
def test_a_schedule_is_data_that_can_be_printed_and_read_again(seed: int, lasts_ms: int, count: int) -> None:
    schedule = generated(seed, lasts_ms, count)
    assert parsed(str(schedule)) == schedule == generated(seed, lasts_ms, count)
    assert len(schedule.faults) <= count


@given(st.integers(), st.integers(2000, 60_000))
def test_faults_fit_into_their_time_and_do_not_meet_at_a_member(seed: int, lasts_ms: int) -> None:
    faults = generated(seed, lasts_ms, 20).faults
    for index, fault in enumerate(faults):
        shortest, longest = LASTS_MS[fault.kind]
        assert shortest <= fault.lasts_ms <= longest
        assert set(fault.targets) <= set(SHAPE.all)
        assert fault.end_ms <= lasts_ms + 500
        later = [other for other in faults[index + 1 :] if other.begin_ms <= fault.end_ms]
        assert not any(fault.held & other.held for other in later)


def test_every_kind_of_fault_comes_before_any_comes_again() -> None:
    for seed in range(20):
        assert {fault.kind for fault in generated(seed, 600_000, len(Kind)).faults} == set(Kind)


@pytest.mark.parametrize("text", ["100 kill broker-1", "1+2 explode broker-1", "a+b kill broker-1"])
def test_a_schedule_that_cannot_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected BEGIN_MS"):
        parsed(text)


def test_a_fault_reads_as_it_is_written() -> None:
    assert parsed("10+5 partition broker-1 bookie-2; ") == Schedule((Fault(10, 5, Kind.PARTITION, ("broker-1", "bookie-2")),))


# The checker


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Message], list[Message]]:
    """Acknowledged, and what a reader may rightly see of it: each producer's in order, again from any place at any time."""
    kept = draw(st.lists(st.tuples(st.sampled_from("pq"), st.booleans()), min_size=2, max_size=30))
    numbers = {"p": 0, "q": 0}
    log: list[Message] = []
    for producer, _ in kept:
        log.append(Message(producer, numbers[producer]))
        numbers[producer] += 1
    acknowledged = [message for message, (_, told) in zip(log, kept, strict=True) if told]
    seen: list[Message] = []
    for end in draw(st.lists(st.integers(0, len(log)), max_size=3)):
        back = draw(st.integers(0, end))
        seen += log[:end] if not seen else log[min(back, _known(seen, log)) : end]
    return acknowledged, seen + log[min(draw(st.integers(0, len(log))), _known(seen, log)) :]


def _known(seen: Sequence[Message], log: Sequence[Message]) -> int:
    """Number of the log's first messages that were seen."""
    return next((index for index, message in enumerate(log) if message not in seen), len(log))


@given(histories())
def test_duplicates_are_no_fault(history: tuple[list[Message], list[Message]]) -> None:
    acknowledged, seen = history
    assert faults_of("r", acknowledged, seen, SENT) == []


@given(histories(), st.data())
def test_a_message_that_is_lost_is_noticed(history: tuple[list[Message], list[Message]], data: st.DataObject) -> None:
    acknowledged, seen = history
    if acknowledged:
        lost = data.draw(st.sampled_from(acknowledged))
        (line,) = faults_of("r", acknowledged, [each for each in seen if each != lost], SENT)
        assert line == f"r: 1 acknowledged and lost: {lost.producer}:{lost.number}"


@given(histories(), st.data())
def test_messages_of_one_producer_out_of_order_are_noticed(
    history: tuple[list[Message], list[Message]], data: st.DataObject
) -> None:
    acknowledged, seen = history
    order = list(dict.fromkeys(seen))
    pairs = [(a, b) for a in order for b in order if a.producer == b.producer and a.number < b.number]
    if pairs:
        first, second = data.draw(st.sampled_from(pairs))
        swapped = [{first: second, second: first}.get(each, each) for each in order]
        assert any("out of order" in line for line in faults_of("r", acknowledged, swapped, SENT))


def test_a_message_that_was_never_sent_is_noticed() -> None:
    assert faults_of("r", [], [message_of(b"p:40")], SENT) == ["r: 1 never sent: p:40"]


def test_one_place_for_two_messages_is_noticed() -> None:
    """Two brokers may both write, and each tell its clients so."""
    one, other = Message("p", 0), Message("q", 0)
    topic = Topic(sent=SENT, acknowledged={one: "(1,0,-1,-1)", other: "(1,0,-1,-1)"}, seen={"r": [one, other]})
    assert topic.faults() == [f"{other} and {one} were both acknowledged as (1,0,-1,-1)"]
    assert topic.unanswered() == 78


class ShellNetwork(Network):
    """Instead of a namespace, a shell that runs a script of ours in place of the member."""

    def __init__(self, script: str) -> None:
        self.addresses, self.script = {"bookie-1": "127.0.0.1"}, script

    def inside(self, name: str) -> tuple[str, ...]:
        return ("sh", "-c", self.script)


@pytest.fixture
def member(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Member]:
    with Member(tmp_path, ShellNetwork(request.param), "bookie-1", ("bookie",), ()) as made:
        made.launch()
        yield made


@pytest.mark.parametrize("member", ["exec sleep 60"], indirect=True)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_member_that_was_stopped_on_purpose_did_not_end_by_itself(member: Member, how: str) -> None:
    assert member.end() == ""
    getattr(member, how)()
    assert member.end() == "was stopped on purpose, and not started again"
    member.launch()
    assert member.end() == "", "it was started again"
    assert member._process is not None
    member._process.kill()
    member._process.wait()
    assert member.end() == "ended by itself with exit code -9", "the end on purpose was before"


@pytest.mark.parametrize("member", ["exit 3"], indirect=True)
def test_a_member_that_ended_by_itself_says_with_which_exit_code(member: Member) -> None:
    assert member._process is not None
    member._process.wait(60)
    assert member.end() == "ended by itself with exit code 3"
