"""Patterns of topics: which are evaluated here, what they match, and that none of them runs away."""

import asyncio
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.service.catalogue import topic_lists
from broker.service.catalogue.topic_lists import NAMES_PER_SLICE, UnusablePattern, compile_pattern, matching, topics_hash
from broker.service.topic_name import TopicName
from tests.cost import Counter
from wire.kernels.entries import checksum


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


def _hash(topics: list[str]) -> str:
    return asyncio.run(topics_hash(topics))


def _hash_at_once(topics: list[str]) -> str:
    """The naive twin."""
    ordered = sorted(topics, key=lambda topic: topic.encode("utf-16-be"))
    return checksum(",".join(ordered).encode()).to_bytes(4, "little").hex()


def test_the_hash_of_a_list_is_guavas_crc32c_of_the_sorted_names_joined_by_commas() -> None:
    """CRC32C of "123456789" is e3069283; Guava writes the lowest byte first."""
    assert _hash(["123456789"]) == "839206e3"
    assert _hash(["b", "a"]) == _hash(["a", "b"]) != _hash(["a,", "b"])
    assert _hash([]) == "00000000"
    assert re.fullmatch("[0-9a-f]{8}", _hash(["persistent://public/default/ä"]))


@given(st.lists(st.text("abz\uffff\U0001f600ä", max_size=4), max_size=40), st.integers(1, 9))
def test_a_hash_in_slices_is_the_hash_at_once(names: list[str], slice_size: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(topic_lists, "NAMES_PER_SLICE", slice_size)
        assert _hash(names) == _hash_at_once(names)


def test_a_list_of_very_many_names_is_hashed_in_slices() -> None:
    names = [f"persistent://public/default/{number * 7919 % 100_003}" for number in range(20 * NAMES_PER_SLICE)]
    expected = _hash_at_once(names)
    with Counter() as counter:
        assert _hash(names) == expected
    assert counter.longest < counter.steps / 8, f"of {counter.steps} in all"
