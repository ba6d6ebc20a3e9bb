"""How far a stream is behind its topics: asked of the brokers, since PySpark shows no metrics of a source in Python.

What a query's progress has of its own are offsets (`endOffset`, `latestOffset`); how many entries lie between two of them the
ledgers of the topics say.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .client.admin import ledgers_of_all
from .client.brokers import topics_of
from .errors import PipelineError
from .options import parse_options
from .positions import EARLIEST, Place
from .stream_offsets import backlog, places_in


def entries_behind(progress: Mapping[str, Any] | None, options: Mapping[str, str]) -> dict[str, int]:
    """By topic, a partition by itself: how many entries there are now from where the stream's last batch ended.

    `progress`: a query's `lastProgress`, or what `json.loads` makes of its JSON. `options`: those of the stream. A topic that
    the stream has not seen yet is behind by all that it has. PipelineError.
    """
    asked = parse_options(options, is_stream=True)
    places = _places((progress or {}).get("sources", ()))
    found = ledgers_of_all(topics_of(asked), asked.access, skips_absent=True)
    return {topic: backlog(ledgers, places.get(topic, EARLIEST)).entries for topic, ledgers in found.items()}


def _places(sources: Iterable[Mapping[str, Any]]) -> dict[str, Place]:
    """Of a topic that several sources of the query read, where the last of them is."""
    places: dict[str, Place] = {}
    offsets = [found for each in sources if (found := _offset(each)) is not None]
    if not offsets:
        raise PipelineError("progress: it has no offset of a topic: ask for lastProgress when the first batch has ended")
    for offset in offsets:
        for topic, place in places_in(offset).items():
            places[topic] = min(place, places.get(topic, place))
    return places


def _offset(source: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None of a source of another kind, and before the first batch. PySpark has it as text, Spark's JSON as an object."""
    found = source.get("endOffset")
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return None
    return found if isinstance(found, Mapping) and "topics" in found else None
