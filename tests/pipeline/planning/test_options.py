"""Options: what is wrong is told by the option's name, its value and what is expected, before a broker is asked."""

import pytest

from pipeline.pyspark_pulsar.errors import WrongOption
from pipeline.pyspark_pulsar.options import SourceOptions, parse_options, refuse_misplaced
from pipeline.pyspark_pulsar.positions import EARLIEST, LATEST, Place

BASE = {"service.url": "pulsar://h:1", "admin.url": "http://h:2", "topic": "t"}


def parsed(**given: str) -> SourceOptions:
    return parse_options(BASE | given, is_stream=False)


def test_names_are_made_whole_and_case_does_not_matter() -> None:
    found = parse_options({"SERVICE.URL": "pulsar://h:1/", "Admin.Url": "http://h:2/", "topics": "a, x/y/z,a"}, is_stream=True)
    assert found.topics == ("persistent://public/default/a", "persistent://x/y/z")
    assert (found.access.service_url, found.access.admin_url) == ("pulsar://h:1", "http://h:2")
    assert (found.starting.default, found.ending.default, found.mode) == (LATEST, LATEST, "FAILFAST")


def test_places_are_of_all_topics_or_of_those_that_are_named() -> None:
    named = {"topic": "", "topics": "t,a/b/c,other"}
    found = parsed(**named, startingOffsets='{"t": "3:4", "a/b/c": "latest"}', endingOffsets="9:1").starting
    assert found.of("persistent://public/default/t") == Place(3, 4)
    assert found.of("persistent://a/b/c") == LATEST
    assert found.of("persistent://public/default/other") == EARLIEST


def test_a_place_of_a_topic_is_that_of_its_partitions_which_may_have_their_own() -> None:
    found = parsed(startingOffsets='{"t": "latest", "t-partition-1": "3:4"}').starting
    assert found.of("persistent://public/default/t-partition-0") == LATEST
    assert found.of("persistent://public/default/t-partition-1") == Place(3, 4)
    of_pattern = parsed(topic="", topicsPattern="t.*", startingOffsets='{"to": "3:4"}').starting
    assert of_pattern.of("persistent://public/default/to-partition-0") == Place(3, 4)


def test_a_stream_begins_at_its_starting_time_or_index_where_it_has_one() -> None:
    for more in ({"startingTime": "5"}, {"startingIndex": "5"}):
        assert parse_options(BASE | more, is_stream=True).starting.default == EARLIEST
    assert parse_options(BASE | {"startingIndex": "5", "startingOffsets": "latest"}, is_stream=True).starting.default == LATEST


@pytest.mark.parametrize(
    ("given", "is_stream"),
    [
        ({"endingOffsets": "3:4"}, True),
        ({"unacknowledgedBy": "s"}, True),
        ({"predefinedSubscription": "s"}, False),
        ({"startingOffsets": "3:4", "unacknowledgedBy": "s"}, False),
    ],
)
def test_misplaced_options_that_select_messages_are_refused(given: dict[str, str], is_stream: bool) -> None:
    with pytest.raises(WrongOption, match=f"option {next(iter(given))}"):
        refuse_misplaced(BASE | given, is_stream)
    assert refuse_misplaced(BASE | {"startingOffsets": "3:4"}, is_stream) is None  # type: ignore[func-returns-value]


def test_times_are_milliseconds_or_written_out() -> None:
    found = parsed(startingTime="1700000000000", endingTime="2023-11-14T22:13:21Z").between
    assert (found.starting_time_ms, found.ending_time_ms) == (1_700_000_000_000, 1_700_000_001_000)


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(parse_options(BASE | {"pulsar.client.authParams": "token:secret"}, is_stream=False))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"service.url": ""}, "option service.url: is needed"),
        ({"service.url": "http://h"}, "option service.url=http://h: expected pulsar://host:port"),
        ({"service.url": "pulsar://h:1,i:2"}, "option service.url=pulsar://h:1,i:2: expected .* of one host"),
        ({"service.url": "pulsar://h:port"}, "option service.url=pulsar://h:port: expected"),
        ({"service.url": "pulsar://h:65536"}, "option service.url=pulsar://h:65536: expected"),
        ({"admin.url": "http://h:port"}, "option admin.url=http://h:port: expected http://host:port"),
        ({"admin.url": ""}, "option admin.url: is needed"),
        ({"topics": "a"}, "only one"),
        ({"topic": "", "topics": " ,"}, "option topics=,: there is no name in it"),
        ({"startingOffsets": '{"u": "3:4"}'}, "option startingOffsets: it has a place of u, which is not read; .*default/t"),
        ({"topic": "", "topicsPattern": "t.*", "endingOffsets": '{"u": "3:4"}'}, "option endingOffsets: it has a place of u"),
        ({"topic": ""}, "topic, topics .* and topicsPattern is needed"),
        ({"topic": "non-persistent://a/b/c"}, "only persistent topics"),
        ({"topic": "", "topicsPattern": "a("}, "no regular expression"),
        ({"startingOffsets": "x"}, "option startingOffsets=x: expected earliest, latest, ledger:entry"),
        ({"startingOffsets": '{"t": 5}'}, "option startingOffsets=5 of t: expected"),
        ({"startingOffsets": "{"}, "option startingOffsets: no JSON"),
        ({"startingTime": "soon"}, "option startingTime=soon: expected milliseconds"),
        ({"startingIndex": "-1"}, "option startingIndex=-1: expected a whole number from 0 on"),
        ({"splitBytes": "0"}, "option splitBytes=0: expected a whole number from 1 on"),
        ({"mode": "lax"}, "option mode=LAX: expected one of FAILFAST"),
        ({"failOnDataLoss": "maybe"}, "option failOnDataLoss=maybe: expected true or false"),
        (
            {"startingIndex": "90", "endingIndex": "10"},
            "options startingIndex=90 and endingIndex=10: the end is before the start",
        ),
        (
            {"startingTime": "2026-11-22T08:00:00Z", "endingTime": "5"},
            "options startingTime=2026-11-22T08:00:00Z and endingTime=5: the end is before",
        ),
        (
            {"startingOffsets": "3:5", "endingOffsets": "3:4"},
            "options startingOffsets and endingOffsets: 3:4, the end, is before the start, 3:5",
        ),
        (
            {"startingOffsets": "3:5", "endingOffsets": '{"t": "1:0"}'},
            "1:0 of persistent://public/default/t, the end, is before",
        ),
        ({"startingOffset": "1:1"}, "option startingoffset: not known"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(WrongOption, match=said):
        parsed(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"startingIndex": "10", "endingIndex": "10"},
        {"startingTime": "5", "endingTime": "5"},
        {"startingOffsets": "3:5", "endingOffsets": "3:5"},
        {"startingOffsets": '{"t": "3:5"}'},
        {"startingOffsets": "latest", "endingOffsets": "9:9"},
        {"startingOffsets": "9:9", "endingOffsets": "earliest"},
    ],
)
def test_a_window_without_anything_in_it_is_none_that_is_wrong(given: dict[str, str]) -> None:
    parsed(**given)
