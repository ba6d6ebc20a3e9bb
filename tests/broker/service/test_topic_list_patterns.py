"""Patterns of topics: which are evaluated here, what they match, and that none of them runs away."""

import asyncio
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.service.topic_lists import NAMES_PER_SLICE, UnusablePattern, compile_pattern, matching, topics_hash
from broker.service.topic_name import TopicName
from tests.cost import Counter


def topic(name: str) -> TopicName:
    return TopicName.parse(f"persistent://public/default/{name}")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (".*", ["a", "ab", "b.c", "p-partition-0"]),
        ("public/default/a.*", ["a", "ab"]),
        ("persistent://public/default/a", ["a"]),
        ("non-persistent://public/default/a", ["a"]),
        ("public/default/(a|b\\.c)", ["a", "b.c"]),
        ("public/default/(?:a|p)", ["a", "p-partition-0"]),
        ("^public/default/a$", ["a"]),
        ("public/default/[a-z]+", ["a", "ab", "p-partition-0"]),
        ("public/default/p", ["p-partition-0"]),
        ("default", []),
        ("", []),
    ],
)
def test_patterns_match_whole_names_without_domain_and_partition(pattern: str, names: list[str]) -> None:
    topics = [topic(name) for name in ("a", "ab", "b.c", "p-partition-0")]
    assert asyncio.run(matching(topics, compile_pattern(pattern, 50))) == [str(topic(name)) for name in names]


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?<!a)b",
        "(a)\\1",
        "[",
        "(",
        "a**",
        "[[",
        "a{1001}",
        "((a{30}){30}){30}",
        "x" * 51,
    ],
)
def test_patterns_that_are_left_to_the_client(pattern: str) -> None:
    with pytest.raises(UnusablePattern):
        compile_pattern(pattern, 50)


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a|a)*", "(.*)*x", ".*.*.*.*.*x", ".?" * 20 + "x", "(a|a)" * 9 + ".*.*x", "(a{30}){30}"]
)
def test_a_pattern_that_would_run_away_elsewhere_costs_a_million_characters_at_most_a_second(pattern: str) -> None:
    """One that backtracks takes longer than the age of the universe."""
    compiled = compile_pattern(pattern, 50)
    began = time.process_time()
    assert compiled.fullmatch("a" * 1_000_000 + "!") is None
    assert time.process_time() - began < 5


@settings(deadline=None, max_examples=200)
@given(st.text("ab.*+?()|[]{}\\^$:x1,-", max_size=50))
def test_no_pattern_that_is_evaluated_runs_away(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern, 50)
    except UnusablePattern:
        return
    began = time.process_time()
    compiled.fullmatch("public/default/" + "a" * 30_000 + "!")
    assert time.process_time() - began < 5


def test_a_list_of_very_many_names_is_matched_in_slices() -> None:
    async def scenario() -> int:
        topics = [topic(str(number)) for number in range(20 * NAMES_PER_SLICE)]
        with Counter() as counter:
            assert len(await matching(topics, compile_pattern("public/default/.*7", 50))) == 2 * NAMES_PER_SLICE
        return counter.longest

    assert asyncio.run(scenario()) < 200_000, "some 3 milliseconds of bytecodes"


def test_the_hash_of_a_list_is_guavas_crc32c_of_the_sorted_names_joined_by_commas() -> None:
    """CRC32C of "123456789" is e3069283; Guava writes the lowest byte first."""
    assert topics_hash(["123456789"]) == "839206e3"
    assert topics_hash(["b", "a"]) == topics_hash(["a", "b"]) != topics_hash(["a,", "b"])
    assert topics_hash([]) == "00000000"
    assert re.fullmatch("[0-9a-f]{8}", topics_hash(["persistent://public/default/ä"]))
