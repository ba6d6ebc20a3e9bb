"""Properties of dead letters, and groups of letters by their cause. Pure.

Properties are those that Apache's clients add (RetryMessageUtil, in C++ ConsumerImpl::processPossibleToDLQ); only the
application knows why it failed to process a message; it may say so in a property of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy

from ...decode.octets import Flags
from ...options import Between
from ...rows_wanted import within

REAL_TOPIC, REAL_SUBSCRIPTION, REDELIVERIES = "REAL_TOPIC", "REAL_SUBSCRIPTION", "RECONSUMETIMES"
ORIGINS = ("ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME")
CLIENTS_OWN = frozenset({REAL_TOPIC, REAL_SUBSCRIPTION, REDELIVERIES, "DELAY_TIME", "RETRY_TOPIC", *ORIGINS})
"""Properties that a client adds to a letter: meaningless or harmful on a message that is to be worked on again."""
COLUMNS = ("key", "value", "properties", "event_time", "message_id", "publish_time", "schema_version")
NO_CAUSE = "(not told)"
_CAUSE_NAMES = re.compile(r"exception|error|cause|reason|fail", re.IGNORECASE)
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\d+")
_COUNT = re.compile(r"\d{1,18}")
"""Anybody may write a property: Python takes no text of 5,000 digits for a number."""
_CAUSE_CHARACTERS_MAX = 160
_GROUPS_MAX = 1000
_OTHERS = ("(others)", "", "")


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `redeliveries` is -1, `subscription` and `topic` are "", where its properties do not tell them."""

    topic: str
    subscription: str
    cause: str
    redeliveries: int
    origin: str
    key: bytes | None
    value: bytes | None
    properties: Mapping[str, str]
    publish_time: datetime | None
    place: str


def is_between(batch: Any, between: Between) -> Flags:
    """Whether each row of a batch with publish_time and index is in the range; rows without an index are in no index range."""
    times = numpy.asarray(batch.column("publish_time").cast("int64")) // 1000
    return within(between, times, numpy.asarray(batch.column("index").fill_null(-1)))


def letters_of(batch: Any, dead_letter_topic: str, cause_property: str) -> Iterator[Letter]:
    """Letters in the rows of a batch with COLUMNS."""
    for row in batch.select([name for name in COLUMNS if name != "event_time"]).to_pylist():
        yield _letter(row, dead_letter_topic, cause_property)


def _letter(row: Mapping[str, Any], dead_letter_topic: str, cause_property: str) -> Letter:
    properties = dict(row["properties"])
    topic = properties.get(REAL_TOPIC, "")
    count = properties.get(REDELIVERIES, "")
    place = row["message_id"]
    return Letter(
        topic=topic,
        subscription=properties.get(REAL_SUBSCRIPTION) or subscription_in(dead_letter_topic, topic),
        cause=cause_of(properties, cause_property),
        redeliveries=int(count) if _COUNT.fullmatch(count) else -1,
        origin=next((properties[name] for name in ORIGINS if name in properties), ""),
        key=row["key"],
        value=row["value"],
        properties=properties,
        publish_time=row["publish_time"],
        place=f"{dead_letter_topic} {place['ledger_id']}:{place['entry_id']}:{place['batch_index']}",
    )


def subscription_in(dead_letter_topic: str, topic: str) -> str:
    """Subscription in the name that clients give dead letter topics, `<topic>-<subscription>-DLQ`; "" for other names."""
    name = dead_letter_topic.removesuffix("-DLQ")
    is_named_so = bool(topic) and name != dead_letter_topic and name.startswith(f"{topic}-")
    return name.removeprefix(f"{topic}-") if is_named_so else ""


def cause_of(properties: Mapping[str, str], name: str) -> str:
    """The first line of that property, or of those that sound like it; numbers in it are `#`, so that alike causes are one."""
    found = [properties[each] for each in sorted(properties) if _is_cause(each, name)]
    text = next((line for each in found for line in each.splitlines() if line.strip()), "")
    return _VARIABLE.sub("#", text.strip())[:_CAUSE_CHARACTERS_MAX] or NO_CAUSE


def _is_cause(name: str, wanted: str) -> bool:
    return name == wanted if wanted else name not in CLIENTS_OWN and bool(_CAUSE_NAMES.search(name))


@dataclass(slots=True)
class Group:
    """Letters of one cause, topic and subscription."""

    count: int = 0
    redeliveries_max: int = -1
    oldest: datetime | None = None
    newest: datetime | None = None
    example: str = ""

    def add(self, letter: Letter) -> None:
        self.count += 1
        self.redeliveries_max = max(self.redeliveries_max, letter.redeliveries)
        time = letter.publish_time
        if time is not None:
            self.oldest = time if self.oldest is None else min(self.oldest, time)
            self.newest = time if self.newest is None else max(self.newest, time)
        self.example = self.example or letter.place


@dataclass(slots=True)
class Groups:
    """Letters by cause, topic and subscription; beyond a thousand groups the rest is one."""

    found: dict[tuple[str, str, str], Group] = field(default_factory=dict)

    def add(self, letters: Iterable[Letter]) -> None:
        for each in letters:
            key = (each.cause, each.topic or NO_CAUSE, each.subscription or NO_CAUSE)
            if key not in self.found and len(self.found) >= _GROUPS_MAX:
                key = _OTHERS
            self.found.setdefault(key, Group()).add(each)

    @property
    def count(self) -> int:
        return sum(each.count for each in self.found.values())

    def findings(self) -> list[str]:
        """A sentence for each of the largest groups: how many letters, of what, why, and where one of them is."""
        rows = self.rows()
        said = [_finding(*row) for row in rows[:_SAID_MAX]]
        if len(rows) > _SAID_MAX:
            said.append(f"and {len(rows) - _SAID_MAX} more causes; --report DIRECTORY lists all")
        return said

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of a report, the largest group first; see GROUP_COLUMNS."""
        ordered = sorted(self.found.items(), key=lambda item: (-item[1].count, item[0]))
        return [
            (
                *key,
                each.count,
                each.redeliveries_max if each.redeliveries_max >= 0 else None,
                each.oldest,
                each.newest,
                each.example,
            )
            for key, each in ordered
        ]


def _finding(cause: str, topic: str, subscription: str, count: int, redeliveries: int | None, *rest: Any) -> str:
    tries = f", redelivered up to {redeliveries} times" if redeliveries is not None else ""
    letters = "1 letter" if count == 1 else f"{count} letters"
    return f"{letters} of topic {topic}, subscription {subscription}{tries}: {cause}; for example {rest[-1]}"


_SAID_MAX = 20
"""Sentences for the terminal; the rest is counted."""

GROUP_COLUMNS = ("cause", "topic", "subscription", "letters", "most redeliveries", "oldest", "newest", "for example")
