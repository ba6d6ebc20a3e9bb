"""Turns of the consumers of a Shared subscription: by priority level, and round robin within one.

Levels 0, 1, ... are served in order: the next one only while no consumer above has room. With few permits a turn is one
message, so that C1, C2, C3 with 2, 1, 1 permits get C1, C2, C3, C1; with plenty it is a span of up to
dispatcherMaxRoundRobinBatchSize messages; a single consumer gets everything.
"""

from collections.abc import Callable, Iterator

from wire.kernels.delivery_rows import LevelRow

from .permits import Receiver

_TURNS_PER_PERMITS = 8
"""Part of a consumer's permits that a turn takes at most, so that spans do not starve the others."""


class _Level(LevelRow):
    """The consumers of one priority, in the order in which they came, and the next one."""

    __slots__ = ("priority_level",)

    members: list[Receiver]

    def __init__(self, priority_level: int) -> None:
        self.priority_level = priority_level
        self.members = []
        self.next = 0

    def in_turn(self) -> Iterator[Receiver]:
        """All consumers, from the next one round to the last one."""
        count = len(self.members)
        return (self.members[place % count] for place in range(self.next, self.next + count))

    def had_turn(self, receiver: Receiver) -> None:
        self.next = (self.members.index(receiver) + 1) % len(self.members)


class Turns:
    """The order of service. Asks for everybody's room each time, since it changes with each turn."""

    __slots__ = ("_levels", "_turn_max")

    def __init__(self, turn_messages_max: int) -> None:
        self._turn_max = max(1, turn_messages_max)
        self._levels: list[_Level] = []

    def add(self, receiver: Receiver) -> None:
        for level in self._levels:
            if level.priority_level == receiver.priority_level:
                level.members.append(receiver)
                return
        level = _Level(receiver.priority_level)
        level.members.append(receiver)
        self._levels.append(level)
        self._levels.sort(key=_priority)

    def remove(self, receiver: Receiver) -> None:
        for level in self._levels:
            if receiver in level.members:
                place = level.members.index(receiver)
                level.members.remove(receiver)
                level.next -= place < level.next
        self._levels = [level for level in self._levels if level.members]

    def take(self, room: Callable[[Receiver], int]) -> tuple[Receiver, int] | None:
        """The next consumer and how many messages its turn has; None when no consumer has room."""
        for level in self._levels:
            able = (receiver for receiver in level.in_turn() if room(receiver))
            receiver = next(able, None)
            if receiver is None:
                continue
            messages = room(receiver)
            if next(able, None) is not None:  # not alone
                messages = min(messages, self._turn_max, max(1, receiver.permits // _TURNS_PER_PERMITS))
            level.had_turn(receiver)
            return receiver, messages
        return None


def _priority(level: _Level) -> int:
    return level.priority_level
