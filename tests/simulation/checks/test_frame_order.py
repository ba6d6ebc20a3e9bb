"""The watch over the order of frames: what it lets pass, what it finds, that the docs say the same, and a bug that it finds."""

import ast
import inspect
from collections.abc import Sequence
from typing import Any

import pytest

from broker.connection.session import _ALWAYS, _FROM_BROKERS
from broker.topic.subscription.consumer import TopicConsumer
from simulation.checks import frame_order
from simulation.checks.frame_order import ANSWERS, FrameOrder, OutOfOrder
from simulation.standalone.scenario import run_seed
from tests.broker.connection.peer import connect, flow, producer, seek, send, subscribe
from tests.toolchain import ROOT
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

FAILOVER = api.CommandSubscribe.Failover
TEXT = (ROOT / "docs" / "frame-order.md").read_text()


def told(name: str, **fields: Any) -> BaseCommand:
    return BaseCommand(type=name, **{frame_order._BODIES[BaseCommand.Type.Value(name)]: fields})


def success(request_id: int) -> BaseCommand:
    return told("SUCCESS", request_id=request_id)


def ready(request_id: int = 10, *, is_ready: bool = True) -> BaseCommand:
    return told("PRODUCER_SUCCESS", request_id=request_id, producer_name="p", producer_ready=is_ready)


def message(consumer_id: int = 1) -> BaseCommand:
    return told("MESSAGE", consumer_id=consumer_id, message_id={"ledger_id": 1, "entry_id": 1})


def active(is_active: bool) -> BaseCommand:
    return told("ACTIVE_CONSUMER_CHANGE", consumer_id=1, is_active=is_active)


def receipt(sequence_id: int) -> BaseCommand:
    return told("SEND_RECEIPT", producer_id=1, sequence_id=sequence_id)


CLOSE_CONSUMER = told("CLOSE_CONSUMER", consumer_id=1, request_id=40)
CLOSE_PRODUCER = told("CLOSE_PRODUCER", producer_id=1, request_id=41)
UNSUBSCRIBE = told("UNSUBSCRIBE", consumer_id=1, request_id=42)
END_OF_TOPIC = told("REACHED_END_OF_TOPIC", consumer_id=1)
WATCH = told("WATCH_TOPIC_LIST", request_id=43, watcher_id=3, namespace="a/b", topics_pattern=".*")
WATCHED = told("WATCH_TOPIC_LIST_SUCCESS", request_id=43, watcher_id=3, topics_hash="0")
UPDATE = told("WATCH_TOPIC_UPDATE", watcher_id=3, topics_hash="0")
CONNECTED = told("CONNECTED", server_version="x")
CONSUMES = ("> ", subscribe(1)), ("< ", success(20)), ("> ", flow(1, 10))
FAILS_OVER = ("> ", subscribe(1, sub_type=FAILOVER)), ("< ", success(20)), ("> ", flow(1, 10))
PRODUCES = ("> ", producer(1)), ("< ", ready())
SENDS = *PRODUCES, ("> ", send(1, 0)), ("> ", send(1, 1))
Tape = Sequence[tuple[str, BaseCommand]]


def watch(tape: Tape) -> None:
    order = FrameOrder()
    order.sent(connect())
    for way, command in tape:
        (order.sent if way == "> " else order.received)(command)


@pytest.mark.parametrize(
    "tape",
    [
        [("< ", CONNECTED), *CONSUMES, ("< ", message()), ("> ", CLOSE_CONSUMER), ("< ", message()), ("< ", success(40))],
        [*FAILS_OVER, ("< ", active(True)), ("< ", message()), ("< ", active(False)), ("< ", END_OF_TOPIC)],
        [*CONSUMES, ("> ", seek()), ("< ", CLOSE_CONSUMER), ("< ", success(30)), *CONSUMES, ("< ", message())],
        [*CONSUMES, ("> ", UNSUBSCRIBE), ("< ", success(42)), *CONSUMES, ("< ", message())],
        [("> ", producer(1)), ("< ", ready(is_ready=False)), ("< ", ready()), ("> ", send(1, 7)), ("< ", receipt(7))],
        [*SENDS, ("< ", receipt(0)), ("> ", CLOSE_PRODUCER), ("< ", receipt(1)), ("< ", success(41))],
        [*SENDS, ("< ", CLOSE_PRODUCER), *SENDS, ("< ", receipt(0)), ("< ", receipt(1))],
        [("> ", WATCH), ("< ", WATCHED), ("< ", UPDATE)],
    ],
)  # fmt: skip
def test_an_allowed_frame_order_passes(tape: Tape) -> None:
    watch(tape)


@pytest.mark.parametrize(
    ("rule", "tape"),
    [
        ("one CONNECTED", [("< ", CONNECTED), ("< ", CONNECTED)]),
        ("a PONG for each PING", [("< ", told("PONG"))]),
        ("one answer to each request", [*CONSUMES, ("< ", success(20))]),
        ("the answer that belongs to the request", [("> ", producer(1)), ("< ", success(10))]),
        ("frames of a consumer between", [("> ", subscribe(1, sub_type=FAILOVER)), ("< ", active(True))]),
        ("frames of a consumer between", [*CONSUMES, ("> ", CLOSE_CONSUMER), ("< ", success(40)), ("< ", message())]),
        ("frames of a consumer between", [*CONSUMES, ("< ", CLOSE_CONSUMER), ("< ", message())]),
        ("messages after permits", [("> ", subscribe(1)), ("< ", success(20)), ("< ", message())]),
        ("messages while told that it is active", [*FAILS_OVER, ("< ", message())]),
        ("messages while told that it is active", [*FAILS_OVER, ("< ", active(False)), ("< ", message())]),
        ("ACTIVE_CONSUMER_CHANGE to consumers of Failover alone", [*CONSUMES, ("< ", active(True))]),
        ("the end of the topic after its last message", [*CONSUMES, ("< ", END_OF_TOPIC), ("< ", message())]),
        ("the end of the topic once", [*CONSUMES, ("< ", END_OF_TOPIC), ("< ", END_OF_TOPIC)]),
        ("no CLOSE_CONSUMER to the consumer that unsubscribes", [*CONSUMES, ("> ", UNSUBSCRIBE), ("< ", CLOSE_CONSUMER)]),
        ("CLOSE_CONSUMER before the SUCCESS of SEEK", [*CONSUMES, ("> ", seek()), ("< ", success(30))]),
        ("frames of a producer between", [("> ", producer(1)), ("> ", send(1, 0)), ("< ", receipt(0))]),
        ("frames of a producer between", [("> ", producer(1)), ("< ", ready(is_ready=False)), ("< ", CLOSE_PRODUCER)]),
        ("frames of a producer between", [*SENDS, ("< ", CLOSE_PRODUCER), ("< ", receipt(0))]),
        ("each SEND answered once, in their order", [*SENDS, ("< ", receipt(1))]),
        ("each SEND answered once, in their order", [*SENDS, ("< ", receipt(0)), ("< ", receipt(0))]),
        ("the SUCCESS of CLOSE_PRODUCER after the last receipt", [*SENDS, ("> ", CLOSE_PRODUCER), ("< ", success(41))]),
        ("updates between", [("> ", WATCH), ("< ", UPDATE)]),
    ],
)  # fmt: skip
def test_a_forbidden_frame_order_is_found_and_its_rule_named(rule: str, tape: Tape) -> None:
    with pytest.raises(OutOfOrder, match=rule):
        watch(tape)


def rules() -> set[str]:
    calls = (each for each in ast.walk(ast.parse(inspect.getsource(frame_order))) if isinstance(each, ast.Call))
    named = (each.args[1] for each in calls if isinstance(each.func, ast.Name) and each.func.id == "_require")
    return {str(each.value) for each in named if isinstance(each, ast.Constant)}


def rows(heading: str) -> dict[str, str]:
    """The rows of the table under a heading: first cell and second."""
    lines = TEXT.split(f"## {heading}")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return dict(cells[2:])


def test_the_page_has_every_promise_and_every_request_with_its_answers() -> None:
    assert set(rows("Order")) == rules()
    answers = rows("Answers")
    assert set(answers) == {BaseCommand.Type.Name(kind) for kind in ANSWERS}
    for kind, those in ANSWERS.items():
        words = answers[BaseCommand.Type.Name(kind)].replace("(", " ").replace(",", " ").split()
        assert {BaseCommand.Type.Name(each) for each in those} <= set(words)


def test_every_command_of_a_client_has_its_answer_or_none_on_the_page() -> None:
    of_clients = set(BaseCommand.Type.values()) - _FROM_BROKERS - _ALWAYS - {BaseCommand.CONNECT}
    without = set(map(BaseCommand.Type.Name, of_clients - set(ANSWERS)))
    assert {name for name in without if name not in TEXT} == set()


def test_a_notice_before_the_answer_to_subscribe_is_found_by_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    told_in_time = TopicConsumer.active_changed

    def told_too_early(consumer: TopicConsumer, is_active: bool) -> None:
        told_in_time(consumer, is_active)
        consumer._sink.active_changed(is_active)

    monkeypatch.setattr(TopicConsumer, "active_changed", told_too_early)
    failures = (run_seed(seed).failure or "" for seed in range(20))
    assert any(failure.startswith("OutOfOrder: frames of a consumer between") for failure in failures)
