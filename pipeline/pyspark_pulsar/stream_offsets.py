"""Offsets of a stream, as Spark keeps them in the checkpoint, and what the next batch may take of what is there. Pure.

`{"version": 1, "topics": {topic: "ledger:entry"}}`: the entry of each topic that is read next, so that one batch ends where the
next begins. Limits are kept by entries: a batch has the messages of whole entries, at least one where there is any.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import PipelineError
from .positions import EARLIEST, LATEST, Ledger, LedgerRange, Place, end_of, parse_place, ranges_between

_VERSION = 1


def offset_json(places: Mapping[str, Place]) -> dict[str, Any]:
    return {"version": _VERSION, "topics": {topic: str(place) for topic, place in sorted(places.items())}}


def places_in(offset: Mapping[str, Any]) -> dict[str, Place]:
    """PipelineError for what another version, or something else, wrote."""
    topics = offset.get("topics")
    if offset.get("version") != _VERSION or not isinstance(topics, Mapping):
        raise PipelineError(f"offset {offset}: not of this source, or of a later version; was the checkpoint another query's?")
    places = {}
    for topic, text in topics.items():
        place = parse_place(str(text))
        if place is None:
            raise PipelineError(f"offset of {topic}: {text} is no position; was the checkpoint changed?")
        places[topic] = place
    return places


def begun(ledgers: Sequence[Ledger], place: Place) -> Place:
    """A named place as the numbers it stands for now; a topic without ledgers begins at `earliest`, whatever comes."""
    if place == LATEST:
        return end_of(ledgers)
    return Place(ledgers[0].ledger_id, 0) if place == EARLIEST and ledgers else place


def beyond_closed(ledgers: Sequence[Ledger], place: Place) -> Place:
    """The end of a ledger that has a successor is the successor's beginning: it stays known when the ledger is deleted."""
    for ledger, successor in itertools.pairwise(ledgers):
        if ledger.ledger_id == place.ledger_id and place.entry_id >= ledger.entries:
            place = Place(successor.ledger_id, 0)
    return place


def mirrored(ledgers: Sequence[Ledger], place: Place) -> Place:
    """Place of a subscription that keeps all that a stream at this place may be asked for.

    It keeps one entry more at the end of a ledger: were the ledger gone, nothing would show that no entry came after it.
    """
    for ledger in ledgers:
        if ledger.ledger_id == place.ledger_id and place.entry_id >= ledger.entries > 0:
            return Place(place.ledger_id, ledger.entries - 1)
    return place


def cut_at(ledgers: Sequence[Ledger], end: Place) -> list[Ledger]:
    """The ledgers as they were when the topic ended there."""
    before = [each for each in ledgers if each.ledger_id < end.ledger_id]
    for each in ledgers:
        if each.ledger_id == end.ledger_id and each.entries:
            entries = min(each.entries, end.entry_id)
            before.append(Ledger(each.ledger_id, entries, each.size_bytes * entries // each.entries, each.closed_at_ms))
    return before


@dataclass(frozen=True, slots=True)
class Limit:
    """Approximate size of one batch; None for no limit."""

    messages: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Data of one topic from its place on. `messages_per_entry` is an estimate, 1.0 at least."""

    ranges: tuple[LedgerRange, ...]
    messages_per_entry: float = 1.0

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.ranges)

    @property
    def entries(self) -> int:
        return sum(each.count for each in self.ranges)


def admitted(starts: Mapping[str, Place], backlogs: Mapping[str, Backlog], limit: Limit) -> dict[str, Place]:
    """End of the batch in each topic: each gives the same share of its backlog, and at least an entry if it has one."""
    share = _share(backlogs.values(), limit)
    return {topic: _end(start, backlogs.get(topic, Backlog(())), share) for topic, start in starts.items()}


def _share(backlogs: Any, limit: Limit) -> float:
    known = list(backlogs)
    messages = sum(each.entries * each.messages_per_entry for each in known)
    size_bytes = sum(each.size_bytes for each in known)
    shares = [1.0]
    if limit.messages is not None and messages:
        shares.append(limit.messages / messages)
    if limit.bytes is not None and size_bytes:
        shares.append(limit.bytes / size_bytes)
    return min(shares)


def _end(start: Place, backlog: Backlog, share: float) -> Place:
    left = max(1, int(backlog.entries * share))
    end = start
    for each in backlog.ranges:
        if left <= 0:
            break
        taken = min(left, each.count)
        end = Place(each.ledger_id, each.first_entry_id + taken)
        left -= taken
    return end


def backlog(ledgers: Sequence[Ledger], place: Place, messages_per_entry: float = 1.0) -> Backlog:
    return Backlog(tuple(ranges_between(ledgers, place, end_of(ledgers))), messages_per_entry)
