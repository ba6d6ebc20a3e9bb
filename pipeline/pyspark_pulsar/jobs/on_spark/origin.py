"""Topics and brokers that a place's messages came from: others are not mixed in by mistake. Pure.

JSON: `{"version": 1, "topics": ["persistent://..."], "pattern": "", "service.url": "pulsar://..."}`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ...errors import PipelineError
from ...names import partitioned_name
from ...options import SourceOptions
from ...places import Chosen

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Origin:
    """These topics, in the order of their names, or those of a pattern."""

    topics: tuple[str, ...]
    pattern: str
    service_url: str

    def __str__(self) -> str:
        return f"{self.pattern or ', '.join(self.topics)} of {self.service_url}"

    def has_all(self, topics: Iterable[str]) -> bool:
        """Partitions count as the topics that they are of."""
        chosen = Chosen(self.topics, self.pattern)
        return all(chosen.has(each) for each in topics)


def origin_of(options: SourceOptions) -> Origin:
    return Origin(tuple(sorted(options.topics)), options.pattern, options.access.service_url)


def told_topics(topics: Iterable[str], service_url: str) -> Origin:
    """Origin of a place that does not name it: the topics that its checkpoint has."""
    return Origin(tuple(sorted({partitioned_name(each) for each in topics})), "", service_url)


def encode(origin: Origin) -> str:
    body = {"version": _VERSION, "topics": list(origin.topics), "pattern": origin.pattern, "service.url": origin.service_url}
    return json.dumps(body, indent=2) + "\n"


def decode(text: str, where: str) -> Origin:
    """PipelineError for a text of another version, or of another program."""
    try:
        found = json.loads(text)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']}")
        return Origin(tuple(map(str, found["topics"])), str(found["pattern"]), str(found["service.url"]))
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{where}: it does not say what was landed here: {error!r}. Land in another place") from None
