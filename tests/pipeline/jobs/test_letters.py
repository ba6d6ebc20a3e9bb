"""Causes of dead letters, and filters of them."""

from datetime import UTC, datetime

import pyarrow
import pytest

from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA
from pipeline.pyspark_pulsar.errors import WrongOption
from pipeline.pyspark_pulsar.jobs.letters.letter_causes import (
    COLUMNS,
    NO_CAUSE,
    Groups,
    Letter,
    cause_of,
    letters_of,
    subscription_in,
)
from pipeline.pyspark_pulsar.jobs.letters.letter_filter import parse_filter

TOPIC = "persistent://public/default/orders"


def letters(*properties: dict[str, str], topic: str = f"{TOPIC}-work-DLQ") -> list[Letter]:
    rows = [
        {
            "key": b"k",
            "value": f"v{number}".encode(),
            "properties": list(each.items()),
            "event_time": None,
            "message_id": {"ledger_id": 5, "entry_id": number, "batch_index": -1},
            "publish_time": datetime.fromtimestamp(1_700_000_000 + number, UTC),
            "schema_version": None,
        }
        for number, each in enumerate(properties)
    ]
    schema = pyarrow.schema([SCHEMA.field(name) for name in COLUMNS])
    return list(letters_of(pyarrow.RecordBatch.from_pylist(rows, schema), topic, ""))


def test_a_letter_tells_its_topic_subscription_origin_and_redeliveries() -> None:
    java = {"REAL_TOPIC": TOPIC, "REAL_SUBSCRIPTION": "own", "ORIGIN_MESSAGE_ID": "3:4:-1", "RECONSUMETIMES": "16"}
    cpp = {"REAL_TOPIC": TOPIC, "ORIGIN_MESSAGE_ID": "(3,5,-1,0)", "error": "no such customer"}
    first, second, third, fourth = letters(java, cpp, {"a": "b", "RECONSUMETIMES": "often"}, {"RECONSUMETIMES": "9" * 5000})
    assert (first.topic, first.subscription, first.origin, first.redeliveries) == (TOPIC, "own", "3:4:-1", 16)
    assert (second.subscription, second.redeliveries, second.cause) == ("work", -1, "no such customer")
    assert second.place == f"{TOPIC}-work-DLQ 5:1:-1"
    assert (third.topic, third.subscription, third.cause, third.redeliveries) == ("", "", NO_CAUSE, -1)
    assert fourth.redeliveries == -1


def test_a_name_that_clients_do_not_make_tells_no_subscription() -> None:
    assert subscription_in(f"{TOPIC}-work-DLQ", TOPIC) == "work"
    assert subscription_in(f"{TOPIC}-a-b-DLQ", TOPIC) == "a-b"
    assert subscription_in("persistent://public/default/dead", TOPIC) == ""
    assert subscription_in(f"{TOPIC}-work-DLQ", "") == ""


@pytest.mark.parametrize(
    ("properties", "cause"),
    [
        ({"EXCEPTION_MESSAGE": "order 17 of 0xBEEF\n  at line 3"}, "order # of #"),
        ({"exception": "\n\n", "reason": "late"}, "late"),
        ({"x-error": "id 123e4567-e89b-12d3-a456-426614174000"}, "id #"),
        ({"cause": "x" * 999}, "x" * 160),
        ({"other": "something"}, NO_CAUSE),
    ],
)
def test_causes_that_differ_in_numbers_are_one(properties: dict[str, str], cause: str) -> None:
    assert cause_of(properties, "") == cause
    assert cause_of({**properties, "why": "because"}, "why") == "because"


def test_letters_by_cause_the_largest_first() -> None:
    groups = Groups()
    groups.add(letters(*({"REAL_TOPIC": TOPIC, "error": f"timeout {number}"} for number in range(3)), {"error": "other"}))
    timeout, other = groups.rows()
    assert timeout[:5] == ("timeout #", TOPIC, "work", 3, None)
    assert (timeout[6] - timeout[5]).total_seconds() == 2
    assert timeout[7] == f"{TOPIC}-work-DLQ 5:0:-1"
    assert other[:4] == ("other", NO_CAUSE, NO_CAUSE, 1)


def test_each_cause_is_a_sentence_with_its_letters_and_one_of_them() -> None:
    groups = Groups()
    groups.add(letters({"REAL_TOPIC": TOPIC, "error": "timeout 1", "RECONSUMETIMES": "3"}))
    groups.add(letters(*({"error": f"bad {number}", "REAL_TOPIC": TOPIC} for number in range(2))))
    assert groups.findings() == [
        f"2 letters of topic {TOPIC}, subscription work: bad #; for example {TOPIC}-work-DLQ 5:0:-1",
        f"1 letter of topic {TOPIC}, subscription work, redelivered up to 3 times: timeout #; "
        f"for example {TOPIC}-work-DLQ 5:0:-1",
    ]
    for number in range(30):
        groups.add(letters({"error": "".join(chr(ord("a") + int(digit)) for digit in str(number))}))
    assert groups.findings()[20:] == ["and 12 more causes; --report DIRECTORY lists all"]


def test_there_is_an_end_to_the_number_of_causes() -> None:
    groups = Groups()
    for number in range(1500):
        name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        groups.add(letters({"error": name}))
    assert groups.count == 1500
    assert len(groups.found) == 1001
    assert groups.rows()[0][0] == "(others)"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], [0, 1, 2]),
        (["cause=timeout #"], [0, 1]),
        (["cause~^time", "property:n!=2"], [0]),
        (["cause!~time"], [2]),
        (["value~v[12]"], [1, 2]),
        (["topic=" + TOPIC, "key=k", "subscription=work", "redeliveries=-1"], [0, 1, 2]),
        (["property:absent="], [0, 1, 2]),
    ],
)
def test_all_conditions_of_a_filter_have_to_hold(conditions: list[str], expected: list[int]) -> None:
    shared = {"REAL_TOPIC": TOPIC}
    found = letters(
        {**shared, "error": "timeout 1", "n": "1"}, {**shared, "error": "timeout 2", "n": "2"}, {**shared, "error": "else"}
    )
    chosen = parse_filter(conditions)
    assert [number for number, each in enumerate(found) if chosen.holds(each)] == expected


def test_filters_are_told_apart_whatever_their_order() -> None:
    one, other = parse_filter(["cause=a", "key=b"]), parse_filter(["key=b", "cause=a"])
    assert one.digest() == other.digest() != parse_filter(["cause=a"]).digest()
    assert one.digest("there") != one.digest()


@pytest.mark.parametrize("text", ["cause", "colour=red", "cause~(", ""])
def test_a_condition_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WrongOption, match="--where"):
        parse_filter([text])
