"""Ownership of bundles in transcripts: the events of `OwnershipMachine`, for bundles that are named by a letter."""

from collections.abc import Iterable, Mapping

from broker.service.ownership import ownership_machine
from broker.service.ownership.bundles import Bundle
from broker.service.ownership.ownership_machine import OwnershipMachine
from broker.service.topic_name import NamespaceName
from tests.transcripts.transcript import Step

NAMESPACE = NamespaceName("public", "default")
EVENTS = {
    event.__name__: event
    for event in (
        ownership_machine.Wanted,
        ownership_machine.Taken,
        ownership_machine.Refused,
        ownership_machine.Lost,
        ownership_machine.Unwanted,
        ownership_machine.TopicsClosed,
        ownership_machine.Released,
        ownership_machine.Adopted,
        ownership_machine.Replaced,
    )
}


class Ownership:
    """One broker. The state of a bundle is shown from its first holding on."""

    def __init__(self, given: Step) -> None:
        self._machine = OwnershipMachine()
        self._names: dict[Bundle, str] = {}
        self._shown: dict[Bundle, None] = {}

    def handle(self, step: Step) -> Iterable[str]:
        if step.name not in EVENTS:
            raise step.unknown()
        name = step.text("bundle")
        low = ord(name) << 16
        bundle = Bundle(NAMESPACE, low, low + (1 << 16))
        self._names[bundle] = name
        effects = self._machine.handle(EVENTS[step.name](bundle))
        self._shown |= dict.fromkeys(self._machine.held())
        return [f"{type(effect).__name__} bundle={self._names[effect.bundle]}" for effect in effects]

    def state(self) -> Mapping[str, str]:
        return {self._names[bundle]: self._machine.holding(bundle).value for bundle in self._shown}

    def check_invariants(self) -> None:
        self._machine.check_invariants()
