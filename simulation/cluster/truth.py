"""Truth: which brokers have opened a log, one after the other, and what each of them found there. Knows more than any broker.

Checked here, at the brokers themselves:
- Of two owners one gets adds acknowledged: a follower has found each entry that the broker before it confirms, or it never gets
  an append of its own confirmed.
- A broker that opens a log finds every entry whose receipt a client has, unless all cursors are past it.
- It finds in each cursor all acknowledgements that clients know to be stored, and none that no client sent.
Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from managed_ledger.contract import ManagedCursor
from simulation.checks.history import MessageId, Violation
from wire.position import Position


@dataclass(slots=True, eq=False)
class Opening:
    """A log as one life of a broker has it. `entries` counts those of each ledger when it was opened."""

    life: str
    entries: dict[int, int]
    has_confirmed: bool = False
    lacks: tuple[Position, str] | None = None
    """Position that an earlier life confirmed later, and the name of that life."""

    def has(self, position: Position) -> bool:
        return position.entry_id < self.entries.get(position.ledger_id, 0)


class LogTruth:
    """Truth about the log of one topic."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.takeovers = self.late_confirms = 0
        self.last_opened_at = 0.0
        self._openings: list[Opening] = []

    @property
    def last_life(self) -> str | None:
        """The broker that opened the log last."""
        return self._openings[-1].life if self._openings else None

    def on_opened(self, life: str, ledgers: Iterable[tuple[int, int]], at: float) -> Opening:
        """`ledgers`: their ids and how many entries each has."""
        self.last_opened_at = at
        opening = Opening(life, dict(ledgers))
        self.takeovers += bool(self._openings) and self._openings[-1].life != life
        self._openings.append(opening)
        return opening

    def on_confirmed(self, opening: Opening, position: Position) -> None:
        """A broker that opened the log is about to tell its clients that what is there is stored."""
        if not opening.has_confirmed and opening.lacks is not None:
            lacking, before = opening.lacks
            raise Violation(
                f"{self.name}: {opening.life} confirms {_text(position)} and has not what {before} did, {_text(lacking)}"
            )
        opening.has_confirmed = True
        followers = self._openings[self._openings.index(opening) + 1 :]
        self.late_confirms += bool(followers)
        for follower in followers:
            if not follower.has(position):
                self._check_alone(opening, position, follower)

    def _check_alone(self, opening: Opening, position: Position, follower: Opening) -> None:
        """A broker that has the log only for reading may be behind; as soon as it writes it must notice."""
        if follower.has_confirmed:
            raise Violation(
                f"{self.name}: {opening.life} confirms {_text(position)}, and {follower.life}, without it, has appended"
            )
        follower.lacks = follower.lacks or (position, opening.life)


def check_cursor(
    name: str,
    cursor: ManagedCursor,
    stored: Iterable[MessageId],
    owed: Iterable[MessageId],
) -> None:
    """Checks a cursor. `stored`: messages whose acknowledgement was answered; `owed`: messages that no client acknowledged."""
    for where in stored:
        if not _is_acknowledged(cursor, where):
            raise Violation(f"{name}: {_text(where)} was answered as acknowledged, and the cursor has forgotten it")
    for where in owed:
        if _is_acknowledged(cursor, where):
            raise Violation(f"{name}: {_text(where)} is acknowledged by nobody, and the cursor is past it")


def _is_acknowledged(cursor: ManagedCursor, where: MessageId) -> bool:
    if cursor.is_acknowledged(where.position):
        return True
    words = cursor.unacknowledged_batch_indexes(where.position)
    if words is None or where.batch_index < 0:
        return False
    word, bit = divmod(where.batch_index, 64)
    return word >= len(words) or not words[word] >> bit & 1


def _text(where: tuple[int, ...]) -> str:
    return ":".join(map(str, where))
