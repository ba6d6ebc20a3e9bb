"""What a subscription has not acknowledged, as ranges of ledgers: from the places that internal stats tell of its cursor. Pure.

An entry of which some messages of its batch are acknowledged is in the ranges. Which of them are left our brokers tell
(`parts`); where they do not, as Apache's, all count as not acknowledged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import NoSuchPosition
from .positions import Ledger, LedgerRange, Place, end_of, ranges_between

_WORD = (1 << 64) - 1
_RANGE = re.compile(r"([(\[])(\d+):(-?\d+)\.\.(\d+):(-?\d+)([)\]])")


def unacknowledged(topic: str, subscription: str, ledgers: Sequence[Ledger], cursor: Mapping[str, Any]) -> list[LedgerRange]:
    """In order. NoSuchPosition where brokers tell of fewer holes than there are, so that they would be read as messages."""
    ledger_id, _, entry_id = str(cursor["markDeletePosition"]).partition(":")
    start = Place(int(ledger_id), int(entry_id) + 1)
    done = list(_ranges(str(cursor["individuallyDeletedMessages"])))
    stated = int(cursor.get("totalNonContiguousDeletedMessagesRange", len(done)))
    if stated > len(done):
        raise NoSuchPosition(
            f"{topic}: subscription {subscription} has {stated} ranges of acknowledged messages; its broker tells {len(done)}: "
            "acknowledge what is before them first"
        )
    return [part for each in ranges_between(ledgers, start, end_of(ledgers)) for part in _without(each, done)]


def parts(topic: str, subscription: str, cursor: Mapping[str, Any]) -> dict[Place, int]:
    """Of batches that are acknowledged in part: the messages that are left, the first one the lowest bit. NoSuchPosition where
    not all batches are told."""
    told: Mapping[str, Any] = cursor.get("partlyAcknowledged", {"batches": 0, "left": {}})
    found = {}
    for text, words in told["left"].items():
        ledger_id, _, entry_id = text.partition(":")
        found[Place(int(ledger_id), int(entry_id))] = sum((word & _WORD) << 64 * at for at, word in enumerate(words))
    if told["batches"] > len(found):
        raise NoSuchPosition(
            f"{topic}: subscription {subscription} has {told['batches']} batches of which a part is acknowledged; its broker "
            f"tells {len(found)}: acknowledge the rest of some first"
        )
    return found


def _ranges(text: str) -> Iterator[tuple[Place, Place]]:
    """First and last acknowledged entry of each; Apache's are open at one end or at both."""
    for opening, first_ledger, first, last_ledger, last, closing in _RANGE.findall(text):
        lower = Place(int(first_ledger), int(first) + (opening == "("))
        yield lower, Place(int(last_ledger), int(last) - (closing == ")"))


def _without(whole: LedgerRange, done: Sequence[tuple[Place, Place]]) -> Iterator[LedgerRange]:
    at = whole.first_entry_id
    for lower, upper in sorted(done):
        if upper < whole.first or lower > whole.last:
            continue
        begin = lower.entry_id if lower.ledger_id == whole.ledger_id else whole.first_entry_id
        end = upper.entry_id + 1 if upper.ledger_id == whole.ledger_id else whole.end_entry_id
        if at < begin:
            yield whole.part(at, begin)
        at = max(at, end)
    if at < whole.end_entry_id:
        yield whole.part(at, whole.end_entry_id)
