"""WriteOrder: which writes may run beside each other. Pure; owns the waits of writes for others.

ZooKeeper does the requests of a connection in their order, but a write that has to be planned anew comes later. So a write
waits for the earlier ones that touch its path, one above or one below it; unrelated ones do not wait for each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from metadata.zookeeper.commit_plan import ancestors


@dataclass(eq=False, slots=True)
class Turn:
    """One write: the paths that it touches, and the earlier writes that it waits for."""

    paths: frozenset[str]
    above: frozenset[str]
    waits_for: dict["Turn", None] = field(default_factory=dict)
    followers: dict["Turn", None] = field(default_factory=dict)

    @property
    def has_come(self) -> bool:
        return not self.waits_for


class WriteOrder:
    """All writes that are under way or wait. Bound: one turn per awaiting caller."""

    def __init__(self) -> None:
        self._at: dict[str, dict[Turn, None]] = {}
        self._below: dict[str, dict[Turn, None]] = {}

    def __len__(self) -> int:
        return len({turn for turns in self._at.values() for turn in turns})

    def join(self, paths: Iterable[str]) -> Turn:
        """The turn of a new write, last of all."""
        touched = frozenset(paths)
        turn = Turn(touched, frozenset(above for path in touched for above in ancestors(path)))
        for path in touched:
            turn.waits_for |= self._at.get(path, {}) | self._below.get(path, {})
        for path in turn.above:
            turn.waits_for |= self._at.get(path, {})
        for earlier in turn.waits_for:
            earlier.followers[turn] = None
        for path in touched:
            self._at.setdefault(path, {})[turn] = None
        for path in turn.above:
            self._below.setdefault(path, {})[turn] = None
        return turn

    def leave(self, turn: Turn) -> list[Turn]:
        """The write is over, or given up while it waited; the turns that have come by that."""
        for index, paths in ((self._at, turn.paths), (self._below, turn.above)):
            for path in paths:
                del index[path][turn]
                if not index[path]:
                    del index[path]
        for earlier in turn.waits_for:
            del earlier.followers[turn]
        for follower in turn.followers:
            del follower.waits_for[turn]
        return [follower for follower in turn.followers if follower.has_come]
