"""Comparison of what producers were told with what consumers saw of one topic.

Pure: `told` and `saw` are called in any order by those who publish and receive; `faults_of` judges at the end.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SHOWN_MAX = 5
"""Messages shown in each line of faults."""


class Message(NamedTuple):
    """Message by its producer and the number that the producer gave it: from 0, each one more than the one before."""

    producer: str
    number: int

    def payload(self) -> bytes:
        return f"{self.producer}:{self.number}".encode()


def message_of(payload: bytes) -> Message:
    producer, _, number = payload.decode().rpartition(":")
    return Message(producer, int(number))


@dataclass(slots=True)
class Topic:
    """The record of one topic."""

    sent: dict[str, int] = field(default_factory=dict)
    """Number of messages sent, by producer."""
    acknowledged: dict[Message, str] = field(default_factory=dict)
    """The message id of each."""
    refused: list[str] = field(default_factory=list)
    """Sends that ended with an error: these messages may be there or not."""
    troubles: list[str] = field(default_factory=list)
    """Other errors that clients got: no fault as long as clients go on."""
    seen: dict[str, list[Message]] = field(default_factory=dict)
    """Messages by reader, in the order of coming, duplicates included."""

    def unseen_by(self, reader: str) -> set[Message]:
        return self.acknowledged.keys() - set(self.seen.get(reader, ()))

    def unanswered(self) -> int:
        return sum(self.sent.values()) - len(self.acknowledged) - len(self.refused)

    def faults(self) -> list[str]:
        """Faults, a line each; empty when there are none."""
        found = [line for reader, seen in self.seen.items() for line in faults_of(reader, self.acknowledged, seen, self.sent)]
        ids: dict[str, Message] = {}
        for message, message_id in self.acknowledged.items():
            other = ids.setdefault(message_id, message)
            if other != message:
                found.append(f"{message} and {other} were both acknowledged as {message_id}")
        return found


def faults_of(reader: str, acknowledged: Collection[Message], seen: Iterable[Message], sent: Mapping[str, int]) -> list[str]:
    """Faults of one reader: lost, never sent, or out of order after duplicates are dropped."""
    first_coming = list(dict.fromkeys(seen))
    lost = sorted(set(acknowledged) - set(first_coming))
    strange = [each for each in first_coming if not 0 <= each.number < sent.get(each.producer, 0)]
    late: list[Message] = []
    highest: dict[str, int] = {}
    for each in first_coming:
        if each.number < highest.get(each.producer, -1):
            late.append(each)
        highest[each.producer] = max(each.number, highest.get(each.producer, -1))
    told = (("acknowledged and lost", lost), ("never sent", strange), ("out of order", late))
    return [f"{reader}: {len(which)} {what}: {_some(which)}" for what, which in told if which]


def _some(which: list[Message]) -> str:
    shown = ", ".join(f"{each.producer}:{each.number}" for each in which[:SHOWN_MAX])
    return shown + (", ..." if len(which) > SHOWN_MAX else "")
