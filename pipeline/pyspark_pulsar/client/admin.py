"""What only the admin REST tells: the ledgers of topics. Small answers, asked again while brokers are away."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import NoSuchPosition, NoSuchTopic
from ..holes import parts, unacknowledged
from ..ledger_places import parse_places
from ..names import admin_path, cursor_name
from ..options import Access
from ..positions import Ledger, LedgerRange, Place
from .admin_session import AdminSession
from .brokers import tried_again

_SESSIONS_MAX = 8
"""That many ask at the same time, each over a connection that it keeps: a thousand topics are 125 round trips."""


def ledgers_of(topic: str, access: Access, with_places: bool = False) -> list[Ledger]:
    """The ledgers of a topic in order, the last one with what is in it now. NoSuchTopic, Refused, Unreachable.

    `with_places`: and where their entries are, as far as the broker tells.
    """
    with AdminSession(access) as session:
        return _ledgers(_internal_stats(session, topic, access, with_places))


def ledgers_of_all(
    topics: Sequence[str], access: Access, with_places: bool = False, skips_absent: bool = False
) -> dict[str, list[Ledger]]:
    """Of each of them, in their order. Topics that are not there are left out, or NoSuchTopic. Refused, Unreachable."""
    if not topics:
        return {}
    shares = [topics[first::_SESSIONS_MAX] for first in range(min(_SESSIONS_MAX, len(topics)))]
    with ThreadPoolExecutor(len(shares)) as workers:
        parts = list(workers.map(lambda share: _ledgers_of_share(share, access, with_places, skips_absent), shares))
    found = dict(itertools.chain.from_iterable(each.items() for each in parts))
    return {topic: found[topic] for topic in topics if topic in found}


def _ledgers_of_share(topics: Iterable[str], access: Access, with_places: bool, skips_absent: bool) -> dict[str, list[Ledger]]:
    found = {}
    with AdminSession(access) as session:
        for topic in topics:
            try:
                found[topic] = _ledgers(_internal_stats(session, topic, access, with_places))
            except NoSuchTopic:
                if not skips_absent:
                    raise
    return found


def _internal_stats(session: AdminSession, topic: str, access: Access, with_places: bool) -> Mapping[str, Any]:
    asked_for = "?metadata=true" if with_places else ""
    return tried_again(topic, access, lambda: session.get(topic, f"/admin/v2/{admin_path(topic)}/internalStats{asked_for}"))


def _ledgers(body: Mapping[str, Any]) -> list[Ledger]:
    found = [_ledger(each) for each in body["ledgers"]]
    if found and not found[-1].entries:  # Apache has the open ledger's numbers elsewhere
        found[-1] = Ledger(found[-1].ledger_id, int(body["currentLedgerEntries"]), int(body["currentLedgerSize"]))
    return found


def _ledger(found: Mapping[str, Any]) -> Ledger:
    ledger_id = int(found["ledgerId"])
    # what is offloaded may not be with bookies any more
    places = None if found.get("offloaded") else parse_places(ledger_id, str(found.get("metadata", "")))
    return Ledger(ledger_id, int(found["entries"]), int(found["size"]), int(found.get("timestamp", 0)), places)


@dataclass(frozen=True, slots=True)
class Unacknowledged:
    """Of one subscription: ranges of entries, and of batches that are acknowledged in part what is left (`holes.parts`)."""

    ranges: list[LedgerRange]
    parts: Mapping[Place, int]


def unacknowledged_of(topic: str, subscription: str, access: Access, with_places: bool) -> Unacknowledged:
    """What it has not acknowledged now. NoSuchTopic, NoSuchPosition where there is no such subscription."""
    with AdminSession(access) as session:
        stats = _internal_stats(session, topic, access, with_places)
    cursor = stats["cursors"].get(cursor_name(subscription))
    if cursor is None:
        raise NoSuchPosition(
            f"{topic}: there is no subscription {subscription}; it has {', '.join(stats['cursors']) or 'none'}"
        )
    return Unacknowledged(unacknowledged(topic, subscription, _ledgers(stats), cursor), parts(topic, subscription, cursor))


def asked(topic: str, access: Access, path: str) -> Mapping[str, Any]:
    """Any other answer of the admin REST that is an object. NoSuchTopic for 404, Refused, Unreachable."""
    with AdminSession(access) as session:
        return tried_again(topic, access, lambda: session.get(topic, path))
