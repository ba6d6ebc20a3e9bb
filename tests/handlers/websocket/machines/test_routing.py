"""Partitions of messages, as Apache's clients choose them."""

from hypothesis import given
from hypothesis import strategies as st

from handlers.websocket.machines.routing import Router, java_string_hash, murmur3_32_hash


def test_hashes_are_those_of_java() -> None:
    assert java_string_hash("") == 0
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("\U0001f600") == 1772899


def test_murmur_is_that_of_guava() -> None:
    assert murmur3_32_hash("") == 0
    assert murmur3_32_hash("hello") == 0x248BFA47
    assert murmur3_32_hash("hello, world") == 0x149BBB7F
    assert murmur3_32_hash("The quick brown fox jumps over the lazy dog") == 0x2E4FF723


@given(st.text(), st.integers(1, 100), st.integers(0, 1000))
def test_a_key_has_one_partition_and_others_one_or_all_in_turn(key: str, partitions: int, chance: int) -> None:
    single = Router("SinglePartition", "JavaStringHash", partitions, chance)
    turns = Router("RoundRobinPartition", "Murmur3_32Hash", partitions, chance)
    assert single.of(key) == java_string_hash(key) % partitions
    assert turns.of(key) == murmur3_32_hash(key) % partitions
    assert len({single.of(None) for _ in range(partitions)}) == 1
    assert {turns.of(None) for _ in range(partitions)} == set(range(partitions))
