"""reconcile finds what was planted, all of it and nothing else; two topics by the command line."""

import json
import random
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pulsar.schema import AvroSchema, Long, Map, Record, String

from tests.clients.python_client import published, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.job_process import urls
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import made

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes
JOBS = "tests.pipeline.sink_jobs"
PRODUCERS, EACH, PLANTED = 4, 2000, 250


def message(producer: int, number: int) -> dict[str, Any]:
    return {
        "key": None if number % 11 == 0 else f"k{number % 5}".encode(),
        "value": f"{producer} {number}".encode(),
        "properties": {"a": f"{number}", "b": ""},
        "event_time": None,
        "topic": "t",
        "producer": f"p{producer}",
        "sequence_id": number,
    }


def rows(messages: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """With places in the order of the list; the list is then mixed, as files are."""
    found = []
    for place, each in enumerate(messages):
        place_of = {**each, "message_id": (place // 1000, place // 10 % 100, place % 10)}
        names = ("key", "value", "properties", "event_time", "topic", "message_id", "producer", "sequence_id")
        found.append(tuple(place_of[name] for name in names))
    random.Random(1).shuffle(found)
    return found


def altered(each: dict[str, Any], how: int) -> dict[str, Any]:
    """Message altered in one of four ways, each of which a look at the value alone or at hashes alone could miss."""
    changes: list[dict[str, Any]] = [
        {"value": each["value"] + b"!"},
        {"value": None},
        {"properties": {**each["properties"], "b": None}},
        {"key": each["value"], "value": each["key"]},
    ]
    return {**each, **changes[how % len(changes)]}


def planted() -> tuple[list[dict[str, Any]], dict[str, set[tuple[str, int]]]]:
    """A copy with a thousand faults, and which they are. Every fault has a neighbour without one between it and the next."""
    chance = random.Random(5)
    places = [(producer, number) for producer in range(PRODUCERS) for number in range(0, EACH, 4)]
    chosen = chance.sample(places, 4 * PLANTED)
    kinds = ["lost", "duplicated", "altered", "reordered"]
    faults = {place: kinds[index % 4] for index, place in enumerate(chosen)}
    told: dict[str, set[tuple[str, int]]] = defaultdict(set)
    copies: list[list[dict[str, Any]]] = []
    for producer in range(PRODUCERS):
        copy: list[dict[str, Any]] = []
        skip = False
        for number in range(EACH):
            each, fault = message(producer, number), faults.get((producer, number))
            if skip:
                skip = False
                continue
            if fault:
                told[fault].add((f"p{producer}", number))
            if fault == "duplicated":
                copy += [each, each]
            elif fault == "altered":
                copy.append(altered(each, number // 4))
            elif fault == "reordered":
                copy += [message(producer, number + 1), each]
                skip = True
            elif fault != "lost":
                copy.append(each)
        copies.append(copy)
    # producers take turns in the topic, as they would
    mixed = [copy[index] for index in range(2 * EACH) for copy in copies if index < len(copy)]
    return mixed, told


def whole() -> list[dict[str, Any]]:
    return [message(producer, number) for number in range(EACH) for producer in range(PRODUCERS)]


def test_a_thousand_planted_faults_are_found_and_nothing_else(spark: SparkProcess, tmp_path: Path) -> None:
    copy, told = planted()
    places = {"expected": whole(), "found": copy, "same": whole()}
    for name, messages in places.items():
        spark.run(f"{JOBS}:write_messages", rows=rows(messages), path=str(tmp_path / name))
    sides = {"expected": str(tmp_path / "expected"), "by": ["producer", "sequence_id"], "scope": "producer"}
    found = spark.run(f"{JOBS}:found_by_reconcile", found=str(tmp_path / "found"), **sides)
    by_kind: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for each in found:
        assert each["count"] == 1
        by_kind[each["kind"]].append((each["producer"], each["sequence_id"]))
    assert {kind: len(each) for kind, each in by_kind.items()} == dict.fromkeys(told, PLANTED)
    for kind in ("lost", "duplicated", "altered"):
        assert set(by_kind[kind]) == told[kind], kind
    # of two that were swapped either may be the one that is out of order
    assert {(producer, number // 4 * 4) for producer, number in by_kind["reordered"]} == told["reordered"]
    assert spark.run(f"{JOBS}:found_by_reconcile", found=str(tmp_path / "same"), **sides) == []


def counts_of(spark: SparkProcess, path: Path, sides: list[list[dict[str, Any]]], by: str) -> dict[str, int]:
    places = [str(path / name) for name in ("expected", "found")]
    for place, messages in zip(places, sides, strict=True):
        spark.run(f"{JOBS}:write_messages", rows=rows(messages), path=place)
    found = spark.run(f"{JOBS}:found_by_reconcile", expected=places[0], found=places[1], by=[by], scope="")
    counted: dict[str, int] = defaultdict(int)
    for each in found:
        counted[each["kind"]] += each["count"]
    return counted


def test_messages_of_one_identity_are_compared_one_by_one(spark: SparkProcess, tmp_path: Path) -> None:
    """Several messages have one key: the one in the middle altered, one lost, one in place of another, one more."""
    values: dict[bytes, tuple[str, str, dict[str, int]]] = {
        **{b"middle %d" % at: ("012345678", "012345678".replace(str(at), "x"), {"altered": 1}) for at in range(9)},
        b"lost": ("123", "13", {"lost": 1}),
        b"swapped": ("112", "122", {"altered": 1}),
        b"twice": ("1", "11", {"duplicated": 1}),
        b"twice, once altered": ("1", "1x", {"duplicated": 1, "altered": 1}),
        b"mixed": ("123", "321", {}),
        b"added": ("", "1", {"added": 1}),
    }
    sides = [
        [{**message(0, 0), "key": key, "value": each.encode()} for key, told in values.items() for each in told[side]]
        for side in (0, 1)
    ]
    expected: dict[str, int] = defaultdict(int)
    for _, _, kinds in values.values():
        for kind, count in kinds.items():
            expected[kind] += count
    assert counts_of(spark, tmp_path, sides, "key") == expected


def test_properties_that_read_alike_are_told_apart(spark: SparkProcess, tmp_path: Path) -> None:
    pairs = [
        ({"a": "b, c"}, {"a, b": "c"}),
        ({"a": "1", "b": "2"}, {"a": "1}, {b, 2"}),
        ({"a": "", "b": "c"}, {"a": "b", "c": ""}),
    ]
    sides = [[{**message(0, number), "properties": pair[side]} for number, pair in enumerate(pairs)] for side in (0, 1)]
    assert counts_of(spark, tmp_path, sides, "sequence_id") == {"altered": 3}


class Item(Record):  # type: ignore[misc]  # the client has no types
    """With a map, which Spark gives no hash."""

    number = Long()
    counts = Map(Long())


class ItemNow(Record):  # type: ignore[misc]
    """With a field more."""

    _avro_name = "Item"
    number = Long()
    counts = Map(Long())
    city = String(required_default=True)


def test_typed_topics_are_compared_with_each_other_and_with_what_was_landed_of_every_schema(
    spark: SparkProcess, standalone: Ready, topic: str, tmp_path: Path
) -> None:
    made(standalone, topic)
    to = str(tmp_path / "landed")
    for kind in (Item, ItemNow):
        more = {"city": "Ulm"} if kind is ItemNow else {}
        with closing(quiet_client(standalone.broker_url)) as client:
            producer = client.create_producer(topic, schema=AvroSchema(kind), producer_name=kind.__name__)
            for number in range(10):
                producer.send(kind(number=number, counts={"a": number}, **more))
        code, out, err = spark.run(f"{JOBS}:command", words=["land", *urls(standalone), "--topics", topic, "--to", to])
        assert (code, json.loads(out or "{}").get("messages")) == (0, 10), err
    others = f"{topic}-others"
    published(standalone, others, 5)
    for expected, found, count in ((topic, f"parquet:{to}/data", 20), (f"{topic},{others}", f"{others},{topic}", 25)):
        words = ["reconcile", *urls(standalone), "--expected", expected, "--found", found]
        code, out, err = spark.run(f"{JOBS}:command", words=words)
        assert (code, json.loads(out or "{}").get("messages found")) == (0, count), (out, err)
    raw = ["reconcile", *urls(standalone), "--option", "values=raw", "--expected", topic, "--found", f"parquet:{to}/data"]
    code, _, err = spark.run(f"{JOBS}:command", words=raw)
    assert code == 2
    assert "value is binary and struct<" in err


def test_two_topics_by_the_command_line(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    copy = f"{topic}-copy"
    for name, count in ((topic, 300), (copy, 297)):
        made(standalone, name)
        spark.run(f"{JOBS}:write_range", options={**options, "topic": name}, rows=count, partitions=1)
    words = ["reconcile", "--service-url", standalone.broker_url, "--admin-url", standalone.web_url]
    words += ["--by", "property:number", "--scope", "key", "--report", str(tmp_path)]
    code, out, _ = spark.run(f"{JOBS}:command", words=[*words, "--expected", topic, "--found", copy])
    facts = json.loads(out)
    assert (code, facts["lost"], facts["messages expected"], facts["messages found"]) == (1, 3, 300, 297)
    assert [facts[kind] for kind in ("duplicated", "added", "altered", "reordered")] == [0, 0, 0, 0]
    told = json.loads((tmp_path / "reconcile.json").read_text())
    assert sorted(each["key"] for each in told["tables"]["the first 100"]) == ["k3", "k4", "k5"]
    assert "<svg" in (tmp_path / "reconcile.html").read_text()
    code, out, _ = spark.run(f"{JOBS}:command", words=[*words, "--expected", topic, "--found", topic])
    assert (code, json.loads(out)["lost"]) == (0, 0)
    code, _, err = spark.run(f"{JOBS}:command", words=[*words, "--expected", topic, "--found", "not-there"])
    assert code == 2
    assert "not-there" in err
