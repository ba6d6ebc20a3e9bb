"""Door: the admission machine with a driver that stores its epochs and asks the producers in the way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from broker.errors import ServerError
from broker.topic.contract import AccessMode, ProducerRequest
from broker.topic.publish.admission import ProducerAdmission
from broker.topic.publish.admission_events import (
    CheckPredecessor,
    Effect,
    EpochNotStored,
    EpochStored,
    PredecessorChecked,
    ProducerArrived,
    ProducerKey,
    ProducerLeft,
    Refuse,
    StoreEpoch,
)
from tests.broker.topic.topic_world import PRODUCER

SHARED, EXCLUSIVE = AccessMode.SHARED, AccessMode.EXCLUSIVE
WAIT, FENCING = AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING
BUSY, FENCED = ServerError.PRODUCER_BUSY, ServerError.PRODUCER_FENCED


class Door:
    """The machine, with epochs stored and predecessors checked at once unless the test does it; `dead` leave when asked."""

    def __init__(
        self,
        topic_epoch: int | None = None,
        *,
        stores: bool = True,
        checks: bool = True,
        dead: Sequence[int] = (),
        **limits: int,
    ) -> None:
        self.machine = ProducerAdmission("t", topic_epoch, **limits)
        self.stores = stores
        self.checks = checks
        self.dead = dead
        self.asked: list[CheckPredecessor] = []
        self.requests: dict[ProducerKey, ProducerRequest] = {}

    def arrive(self, key: int, mode: AccessMode, name: str | None = None, **fields: Any) -> list[Effect]:
        request = replace(PRODUCER, name=name or f"p{key}", access_mode=mode, address=f"10.0.0.{key}:1", **fields)
        self.requests[ProducerKey(key)] = request
        return self._follow(self.machine.handle(ProducerArrived(ProducerKey(key), request)))

    def leave(self, key: int) -> list[Effect]:
        return self._follow(self.machine.handle(ProducerLeft(ProducerKey(key), self.requests[ProducerKey(key)].name)))

    def stored(self, key: int, epoch: int) -> list[Effect]:
        return self._follow(self.machine.handle(EpochStored(ProducerKey(key), epoch)))

    def checked(self, key: int) -> list[Effect]:
        return self._follow(self.machine.handle(PredecessorChecked(ProducerKey(key))))

    def not_stored(self, key: int) -> list[Effect]:
        return self._follow(self.machine.handle(EpochNotStored(ProducerKey(key), ServerError.PERSISTENCE, "no")))

    def _follow(self, effects: list[Effect]) -> list[Effect]:
        self.machine.check_invariants()
        seen: list[Effect] = []
        for effect in effects:
            if isinstance(effect, StoreEpoch) and self.stores:
                seen.extend(self.stored(effect.key, effect.epoch))
            elif isinstance(effect, CheckPredecessor) and self.checks:
                self.asked.append(effect)
                if effect.predecessor in self.dead:
                    seen.extend(self.leave(effect.predecessor))
                seen.extend(self.checked(effect.key))
            else:
                seen.append(effect)
        return seen


def codes(effects: list[Effect]) -> list[ServerError]:
    return [effect.code for effect in effects if isinstance(effect, Refuse)]
