"""Outcome of a write whose answer was lost. Pure.

A commit is all or nothing, so one operation that shows decides for all. The node at an operation's path shows it: at
the version that it expected, it was not done; one version later with its bytes, it was. That another client wrote the very
same bytes at the same version cannot be told apart from our own write, and need not be where the bytes are all that counts;
a caller that must know puts a token of its own into the value, as BookKeeper does (LedgerMetadataFormat.cToken). An ephemeral
node names its session.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from metadata.store import ANY_VERSION, MUST_NOT_EXIST, Delete, Operation, Put, Stat
from metadata.zookeeper.commit_plan import stat_of
from metadata.zookeeper.requests import Found


class Outcome(Enum):
    """DONE: it took effect. NOT_DONE: it did not, and may be sent again. UNKNOWN: what is there does not tell."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome, and the answers when it is DONE."""

    outcome: Outcome
    stats: list[Stat | None]


def settle(operations: Sequence[Operation], found: Mapping[str, Found | None], session_id: int) -> Settled:
    """`found` is what is at each operation's path now; `session_id` that of the session in which it was sent."""
    counts = Counter(operation.path for operation in operations)
    outcomes = [
        Outcome.UNKNOWN if counts[operation.path] > 1 else _of(operation, found[operation.path], session_id)
        for operation in operations
    ]
    stats = [_stat(operation, found[operation.path]) for operation in operations]
    if Outcome.NOT_DONE in outcomes:
        return Settled(Outcome.NOT_DONE, stats)
    return Settled(Outcome.DONE if Outcome.DONE in outcomes else Outcome.UNKNOWN, stats)


def _stat(operation: Operation, found: Found | None) -> Stat | None:
    return None if found is None or isinstance(operation, Delete) else stat_of(operation.path, found.stat)


def _of(operation: Operation, found: Found | None, session_id: int) -> Outcome:
    if isinstance(operation, Delete):
        return _of_delete(operation, found)
    if operation.sequential:
        return Outcome.UNKNOWN
    if operation.expected_version == ANY_VERSION:
        return Outcome.DONE if _is_ours(operation, found, session_id) else Outcome.NOT_DONE
    if operation.expected_version == MUST_NOT_EXIST:
        return _of_create(operation, found, session_id)
    return _of_update(operation, found)


def _of_delete(delete: Delete, found: Found | None) -> Outcome:
    if found is None:
        return Outcome.DONE
    return Outcome.NOT_DONE if delete.expected_version in (ANY_VERSION, found.stat.version) else Outcome.UNKNOWN


def _of_create(put: Put, found: Found | None, session_id: int) -> Outcome:
    if found is None:
        return Outcome.NOT_DONE
    if found.stat.version == 0 and _is_ours(put, found, session_id):
        return Outcome.DONE
    other_owner = put.ephemeral and found.stat.owner != session_id
    return Outcome.NOT_DONE if other_owner else Outcome.UNKNOWN


def _of_update(put: Put, found: Found | None) -> Outcome:
    if found is None:
        return Outcome.UNKNOWN
    if found.stat.version == put.expected_version:
        return Outcome.NOT_DONE
    is_next = found.stat.version == put.expected_version + 1
    return Outcome.DONE if is_next and found.value == put.value else Outcome.UNKNOWN


def _is_ours(put: Put, found: Found | None, session_id: int) -> bool:
    return found is not None and found.value == put.value and found.stat.owner == (session_id if put.ephemeral else 0)
