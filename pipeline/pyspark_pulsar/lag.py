"""Distance of a stream from the end of its topics: asked of the brokers, since PySpark shows no metrics of a Python source.

A query's progress has offsets (`endOffset`, `latestOffset`); the ledgers of the topics tell how many entries lie between two.
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
    """Number of entries, by topic or partition, from the end of the stream's last batch to now.

    `progress`: a query's `lastProgress`, or what `json.loads` makes of its JSON. `options`: those of the stream. A topic that
    the stream has not seen yet is behind by all that it has. PipelineError.
    """
    asked = parse_options(options, is_stream=True)
    places = _places((progress or {}).get("sources", ()))
    found = ledgers_of_all(topics_of(asked), asked.access, skips_absent=True)
    return {topic: backlog(ledgers, places.get(topic, EARLIEST)).entries for topic, ledgers in found.items()}


def _places(sources: Iterable[Mapping[str, Any]]) -> dict[str, Place]:
    """Last place of each topic among the sources of the query that read it."""
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
