"""Questions that the admin REST alone answers: the ledgers of topics. Small answers, asked again while brokers are away."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import quote

from ..errors import NoSuchPosition, NoSuchTopic, Refused
from ..holes import RANGES_MAX, Unacknowledged, is_all_told, runs_in, start_of, unacknowledged
from ..ledger_places import parse_places
from ..names import admin_path, cursor_name
from ..options import Access
from ..partly import parts_in
from ..positions import Ledger, Place, parse_place
from .admin_session import AdminSession
from .bookies.bookies_inside import placed
from .brokers import tried_again

_SESSIONS_MAX = 8
"""Sessions that ask at the same time, each over a connection that it keeps: a thousand topics are 125 round trips."""


def ledgers_of(topic: str, access: Access, with_places: bool = False) -> list[Ledger]:
    """The ledgers of a topic in order, the last one with what is in it now. NoSuchTopic, Refused, Unreachable.

    `with_places`: and where their entries are, as far as the broker tells.
    """
    with AdminSession(access) as session:
        return placed(_ledgers(_internal_stats(session, topic, access, with_places)), access)


def ledgers_of_all(
    topics: Sequence[str], access: Access, with_places: bool = False, skips_absent: bool = False
) -> dict[str, list[Ledger]]:
    """Ledgers of each topic, in the order of `topics`. Absent topics are left out, or NoSuchTopic. Refused, Unreachable."""
    if not topics:
        return {}
    shares = [topics[first::_SESSIONS_MAX] for first in range(min(_SESSIONS_MAX, len(topics)))]
    with ThreadPoolExecutor(len(shares)) as workers:
        parts = list(workers.map(lambda share: _ledgers_of_share(share, access, with_places, skips_absent), shares))
    found = dict(itertools.chain.from_iterable(each.items() for each in parts))
    return {topic: placed(found[topic], access) for topic in topics if topic in found}


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
    if found and not found[-1].entries:  # the open ledger's numbers are elsewhere
        entries, size = int(body["currentLedgerEntries"]), int(body["currentLedgerSize"])
        found[-1] = Ledger(found[-1].ledger_id, entries, size, places=found[-1].places)
    return found


def _ledger(found: Mapping[str, Any]) -> Ledger:
    ledger_id = int(found["ledgerId"])
    # bookies may have deleted an offloaded ledger
    places = None if found.get("offloaded") else parse_places(ledger_id, str(found.get("metadata", "")))
    return Ledger(ledger_id, int(found["entries"]), int(found["size"]), int(found.get("timestamp", 0)), places)


def unacknowledged_of(
    topic: str, subscription: str, access: Access, with_places: bool, ranges_max: int = RANGES_MAX
) -> Unacknowledged:
    """Entries that the subscription has not acknowledged. NoSuchTopic; NoSuchPosition without such a subscription."""
    with AdminSession(access) as session:
        stats = _internal_stats(session, topic, access, with_places)
        cursor = stats["cursors"].get(cursor_name(subscription))
        if cursor is None:
            raise NoSuchPosition(
                f"{topic}: there is no subscription {subscription}; it has {', '.join(stats['cursors']) or 'none'}"
            )
        ledgers, start = placed(_ledgers(stats), access), start_of(cursor)
        if is_all_told(cursor):
            texts, left = [str(cursor["individuallyDeletedMessages"])], cursor.get("partlyAcknowledged", {"left": {}})["left"]
            parts = parts_in([left])
        else:
            texts = []
            parts = parts_in(_parts_of(_hole_pages(session, topic, subscription, access, start), texts))
    return unacknowledged(ledgers, start, runs_in(texts, ledgers), parts, ranges_max)


def _parts_of(pages: Iterable[Mapping[str, Any]], texts: list[str]) -> Iterator[Mapping[str, Any]]:
    """Their batches, a page at a time; their ranges go to `texts`."""
    for page in pages:
        texts.append(page["individuallyDeletedMessages"])
        yield page["partlyAcknowledged"]


def _hole_pages(
    session: AdminSession, topic: str, subscription: str, access: Access, start: Place
) -> Iterator[Mapping[str, Any]]:
    """All of a subscription's holes from there on (`.../holes`, which Interpulse's brokers have). NoSuchPosition without."""
    path = f"/admin/v2/{admin_path(topic)}/subscription/{quote(subscription, safe='')}/holes"
    at: Place | None = start
    while at is not None:
        target = f"{path}?ledgerId={at.ledger_id}&entryId={at.entry_id}"
        try:
            page = tried_again(topic, access, partial(session.get, topic, target))
        except NoSuchTopic:
            raise NoSuchPosition(
                f"{topic}: subscription {subscription} has more holes than its broker shows in internal stats, and it has no "
                f"{path} to tell them all: acknowledge what is before them first"
            ) from None
        yield page
        following = parse_place(page["next"]) if page["next"] else None
        if following is not None and following <= at:
            raise Refused(f"{topic}: {access.admin_url} tells holes up to {following}, after those up to {at}")
        at = following


def asked(topic: str, access: Access, path: str) -> Mapping[str, Any]:
    """Any other answer of the admin REST that is an object. NoSuchTopic for 404, Refused, Unreachable."""
    with AdminSession(access) as session:
        return tried_again(topic, access, lambda: session.get(topic, path))


def delete_topic(topic: str, access: Access) -> None:
    """Deletes the topic with its messages, also while clients use it. NoSuchTopic, Refused, Unreachable."""
    with AdminSession(access) as session:
        tried_again(topic, access, lambda: session.delete(topic, f"/admin/v2/{admin_path(topic)}?force=true"))
