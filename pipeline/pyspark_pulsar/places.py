"""The options startingOffsets and endingOffsets: a place for all topics, or one for each that is named. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import WrongOption
from .names import full_name, partitioned_name
from .positions import Place, parse_place


@dataclass(frozen=True, slots=True)
class Places:
    """Start or end of reading: for named topics, and for all others."""

    default: Place
    by_topic: Mapping[str, Place] = field(default_factory=dict)

    def of(self, topic: str) -> Place:
        """A partition's own, or that of the topic that it is one of."""
        of_all = self.by_topic.get(partitioned_name(topic), self.default)
        return self.by_topic.get(topic, of_all)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Topics that are read: these, or those of a pattern."""

    topics: Sequence[str]
    pattern: str

    def has(self, topic: str) -> bool:
        name = partitioned_name(topic)
        if self.pattern:
            return bool(re.fullmatch(self.pattern, name))
        return topic in self.topics or name in self.topics


def chosen_places(option: str, text: str, default: Place, chosen: Chosen) -> Places:
    """A place, or a JSON object of topics and places. WrongOption: also for a topic that is not read."""
    if not text.startswith("{"):
        return Places(_place(option, text) if text else default)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise WrongOption(f"option {option}: no JSON: {error}") from None
    for topic in found:
        if not chosen.has(full_name(topic)):
            read = chosen.pattern or ", ".join(chosen.topics)
            raise WrongOption(f"option {option}: it has a place of {topic}, which is not read; that is {read}")
    return Places(default, {full_name(topic): _place(option, str(value), topic) for topic, value in found.items()})


def _place(option: str, text: str, topic: str = "") -> Place:
    found = parse_place(text)
    if found is None:
        of = f" of {topic}" if topic else ""
        raise WrongOption(
            f'option {option}={text}{of}: expected earliest, latest, ledger:entry, or {{"topic": "ledger:entry"}}'
        )
    return found
