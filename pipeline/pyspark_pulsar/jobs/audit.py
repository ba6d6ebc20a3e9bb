"""audit: backlog, age and holes of all subscriptions of all topics, by the admin REST alone; no Spark."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ..client.admin import asked
from ..errors import NoSuchTopic, WrongOption
from ..names import admin_path, cursor_name
from ..options import Access, parse_options
from .progress import Progress
from .report import Report, Table

_WORST_MAX = 100
_SAID_MAX = 20
"""Sentences for the terminal; the rest is counted."""
_COLUMNS = ("subscription", "topic", "type", "consumers", "backlog", "unacked", "holes", "oldest backlog seconds")


def add_arguments(job: argparse.ArgumentParser) -> None:
    job.add_argument("--namespace", default="", help="tenant/namespace; all of them without it")
    job.add_argument("--max-backlog", type=int, default=None, help="exit code 1 when a subscription has more than that")


def run(arguments: argparse.Namespace, options: Mapping[str, str], progress: Progress) -> Report:
    """Topics that vanish meanwhile are left out. Refused, Unreachable, WrongOption."""
    if arguments.namespace and not re.fullmatch(r"[^/]+/[^/]+", arguments.namespace):
        raise WrongOption(f"--namespace {arguments.namespace}: expected tenant/namespace")
    if arguments.max_backlog is not None and arguments.max_backlog < 0:
        raise WrongOption(f"--max-backlog {arguments.max_backlog}: expected a whole number from 0 on")
    access = parse_options({**options, "topics": "every"}, is_stream=False).access  # the options of the source, of no topic
    topics = _topics_in(access, arguments.namespace) if arguments.namespace else _all_topics(access)
    if arguments.dry_run:
        return Report("audit", {"admin": access.admin_url, "topics": len(topics)})
    rows = []
    for number, topic in enumerate(topics):
        progress.say(number, len(topics))
        rows += list(_subscriptions(access, topic))
    progress.say(len(topics), len(topics))
    progress.end()
    rows.sort(key=lambda row: (-row[4], row[1], row[0]))
    over = [] if arguments.max_backlog is None else [row for row in rows if row[4] > arguments.max_backlog]
    facts = {
        "admin": access.admin_url,
        "topics": len(topics),
        "subscriptions": len(rows),
        "backlog": sum(row[4] for row in rows),
        "subscriptions with holes": sum(row[6] > 0 for row in rows),
        "subscriptions without a consumer": sum(row[3] == 0 for row in rows),
        "over the limit": len(over),
    }
    table = Table("the largest backlogs", _COLUMNS, rows[:_WORST_MAX], bars="backlog")
    return Report("audit", facts, [table], is_fine=not over, findings=_findings(over, arguments.max_backlog))


def _findings(over: Sequence[tuple[Any, ...]], limit: int) -> list[str]:
    """Sentences on subscriptions over the limit and the likely reasons, the largest first."""
    said = [_finding(row, limit) for row in over[:_SAID_MAX]]
    if len(over) > _SAID_MAX:
        said.append(
            f"and {len(over) - _SAID_MAX} more subscriptions over {limit}; --report DIRECTORY lists the largest {_WORST_MAX}"
        )
    return said


def _finding(row: tuple[Any, ...], limit: int) -> str:
    name, topic, _, consumers, backlog, unacked, holes, oldest = row
    if consumers == 0:
        why = "no consumer is connected"
    elif unacked:
        why = f"{consumers} connected, with {unacked} messages that they have and do not acknowledge"
    else:
        why = f"{consumers} connected, that take less than is published"
    age = f", the oldest {oldest} s old" if oldest else ""
    ranges = f", behind {holes} acknowledged ranges" if holes else ""
    return f"subscription {name} of {topic} has a backlog of {backlog}, {backlog - limit} over {limit}{age}{ranges}: {why}"


def _all_topics(access: Access) -> list[str]:
    namespaces = [each for tenant in _list(access, "tenants") for each in _left(access, f"namespaces/{quote(tenant)}")]
    return [topic for each in namespaces for topic in _left(access, f"persistent/{quote(each)}")]


def _topics_in(access: Access, namespace: str) -> list[str]:
    try:
        return _list(access, f"persistent/{quote(namespace)}")
    except NoSuchTopic:
        raise NoSuchTopic(f"--namespace {namespace}: there is none at {access.admin_url}") from None


def _left(access: Access, path: str) -> list[str]:
    """Nothing of a tenant or a namespace that was deleted since the list was made."""
    try:
        return _list(access, path)
    except NoSuchTopic:
        return []


def _list(access: Access, path: str) -> list[str]:
    found: Any = asked(path, access, f"/admin/v2/{path}")
    return sorted(found)


def _subscriptions(access: Access, topic: str) -> Iterator[tuple[Any, ...]]:
    path = admin_path(topic)
    try:
        stats = asked(topic, access, f"/admin/v2/{path}/stats?getPreciseBacklog=true")
        cursors = asked(topic, access, f"/admin/v2/{path}/internalStats").get("cursors", {})
    except NoSuchTopic:
        return  # deleted since the list was made
    for name, found in sorted(stats.get("subscriptions", {}).items()):
        cursor = cursors.get(cursor_name(name), {})
        yield (
            name,
            topic,
            found.get("type") or "",
            len(found.get("consumers", ())),
            int(found.get("msgBacklog", 0)),
            int(found.get("unackedMessages", 0)),
            int(cursor.get("totalNonContiguousDeletedMessagesRange", 0)),
            max(0, int(found.get("oldestBacklogMessageAgeSeconds", -1) or 0)),
        )
