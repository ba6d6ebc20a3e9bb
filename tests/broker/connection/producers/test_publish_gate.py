"""The gate of a connection: shut as long as anything keeps it shut, told of once; and all memory comes back."""

from collections import deque
from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.connection.producers.publish_gate import (
    ALONE_AFTER_BYTES,
    CONNECTION_BYTES_MAX,
    SHARED_BYTES_MAX,
    PublishGate,
    PublishMemory,
)

MEMORY_BYTES, MESSAGES_MAX = 3000, 5
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 2000)), max_size=60)
"""Each: which connection, how many messages of how many bytes it publishes; a connection whose gate is shut gets a receipt."""


class Connection:
    """A peer that publishes while its gate is open, and the receipts it waits for."""

    def __init__(self, memory: PublishMemory) -> None:
        self.is_reading = True
        self.gate = PublishGate(memory, MESSAGES_MAX, self._change)
        self.pending: deque[tuple[int, int]] = deque()

    def _change(self) -> None:
        assert self.is_reading is self.gate.is_shut, "told of each change once"
        self.is_reading = not self.gate.is_shut

    def publish(self, messages: int, size: int) -> None:
        self.pending.append((messages, size))
        self.gate.began(messages, size)

    def get_receipt(self) -> None:
        self.gate.ended(*self.pending.popleft())


def play(steps: list[tuple[int, int, int]]) -> None:
    memory = PublishMemory(MEMORY_BYTES)
    connections = [Connection(memory) for _ in range(3)]
    for which, messages, size in steps:
        connection = connections[which]
        if connection.is_reading:
            connection.publish(messages, size)
        elif connection.pending:
            connection.get_receipt()
        held = sum(size for each in connections for _, size in each.pending)
        assert all(each.is_reading for each in connections) or held > 0, "a gate is shut and nothing could open it"
    for connection in connections:
        while connection.pending:
            connection.get_receipt()
    assert all(connection.is_reading for connection in connections)
    connections[0].publish(1, MEMORY_BYTES)
    assert connections[0].is_reading, "all memory is back"


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_every_gate_is_open_and_all_memory_is_back_after_the_last_receipt(steps: list[tuple[int, int, int]]) -> None:
    play(steps)


def _kept_when_a_receipt_opens(ended: Callable[[PublishGate, int, int], None]) -> Callable[[PublishGate, int, int], None]:
    def broken(self: PublishGate, messages: int, size: int) -> None:
        was_full = self._is_full
        ended(self, messages, size)
        if was_full and not self._is_full:
            self._memory._bytes += size

    return broken


def test_memory_that_is_not_given_back_when_a_receipt_opens_the_gate_is_found() -> None:
    with patch.object(PublishGate, "ended", _kept_when_a_receipt_opens(PublishGate.ended)), pytest.raises(AssertionError):
        play([(0, 5, 100), (0, 5, 100)])


def publish_alone(gate: PublishGate) -> None:
    """Publishes as much as shows that no other connection does, with little in flight."""
    for _ in range(2 * ALONE_AFTER_BYTES // SHARED_BYTES_MAX):
        gate.began(1, SHARED_BYTES_MAX // 2)
        gate.ended(1, SHARED_BYTES_MAX // 2)


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_gate_is_shut_by_bytes_alone_and_opens_at_half_of_them(is_alone: bool) -> None:
    changes: list[bool] = []
    gate = PublishGate(PublishMemory(1 << 30), 1000, lambda: changes.append(gate.is_shut))
    if is_alone:
        publish_alone(gate)
    half = (CONNECTION_BYTES_MAX if is_alone else SHARED_BYTES_MAX) // 2
    gate.began(1, half)
    gate.began(1, 1)
    assert changes == []
    gate.began(1, half - 1)
    assert changes == [True]
    gate.ended(1, half - 1)
    assert changes == [True], "one byte more than half is there"
    gate.ended(1, 1)
    assert changes == [True, False]


def test_a_message_of_another_connection_lowers_the_limit_of_bytes_of_a_busy_one() -> None:
    memory, changes = PublishMemory(1 << 30), list[bool]()
    busy = PublishGate(memory, 1000, lambda: changes.append(busy.is_shut))
    quiet = PublishGate(memory, 1000, lambda: None)
    publish_alone(busy)
    busy.began(1, CONNECTION_BYTES_MAX - 1)
    quiet.began(1, 100)
    assert changes == [], "the limit applies from the next message on"
    busy.began(1, 1)
    busy.ended(1, CONNECTION_BYTES_MAX - 1)
    assert changes == [True, False]
    busy.began(1, SHARED_BYTES_MAX - 1)
    assert changes == [True, False, True]
    assert not quiet.is_shut


def test_a_connection_is_alone_again_once_others_have_been_silent_for_long() -> None:
    memory = PublishMemory(1 << 30)
    busy, quiet = (PublishGate(memory, 1000, lambda: None) for _ in range(2))
    for gate in (busy, quiet, busy):
        publish_alone(gate)
    busy.began(1, CONNECTION_BYTES_MAX - 1)
    assert not busy.is_shut


def test_a_gate_that_rates_hold_opens_when_the_last_has_let_go_and_nothing_else_keeps_it_shut() -> None:
    changes: list[bool] = []
    gate = PublishGate(PublishMemory(1 << 30), 4, lambda: changes.append(gate.is_shut))
    gate.hold()
    gate.hold()
    gate.resume()
    assert changes == [True]
    gate.began(4, 100)
    gate.resume()
    assert changes == [True]
    gate.ended(4, 100)
    assert (changes, gate.is_shut) == ([True, False], False)
