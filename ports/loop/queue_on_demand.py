"""Queues that exist only while something is in them: an empty deque takes 760 bytes, and a quiet topic has many queues."""

from collections import deque
from typing import TypeVar

T = TypeVar("T")


def queued(queue: deque[T] | None, item: T) -> deque[T]:
    """The queue with `item` at its end; a new one where there is none."""
    if queue is None:
        return deque((item,))
    queue.append(item)
    return queue


def without_first(queue: deque[T]) -> deque[T] | None:
    """The queue after its first item was taken; None where that was the last one."""
    queue.popleft()
    return queue or None
