"""Events of the producers of a topic, and the effects of `admission.ProducerAdmission`.

A producer is known by a key that the driver gives. Each arrival gets exactly one of Admit, Enqueue and Refuse, after Enqueue
Admit or Refuse once more; before, it may have to wait for a CheckPredecessor.
"""

from typing import NewType, TypeAlias

from broker.errors import ServerError
from wire.record import record

from ..contract import ProducerRequest

ProducerKey = NewType("ProducerKey", int)


@record(frozen=True, slots=True)
class ProducerArrived:
    """A client asks to publish."""

    key: ProducerKey
    request: ProducerRequest


@record(frozen=True, slots=True)
class PredecessorChecked:
    """The one in the way of a CheckPredecessor has answered, or else its ProducerLeft came before."""

    key: ProducerKey


@record(frozen=True, slots=True)
class EpochStored:
    """The epoch of a StoreEpoch is durable."""

    key: ProducerKey
    epoch: int


@record(frozen=True, slots=True)
class EpochNotStored:
    """The epoch of a StoreEpoch could not be stored."""

    key: ProducerKey
    code: ServerError
    message: str


@record(frozen=True, slots=True)
class ProducerLeft:
    """The producer closed or its connection broke, in any state. Unknown: ignored."""

    key: ProducerKey
    name: str


Event: TypeAlias = ProducerArrived | PredecessorChecked | EpochStored | EpochNotStored | ProducerLeft


@record(frozen=True, slots=True)
class Admit:
    """The producer may publish."""

    key: ProducerKey
    topic_epoch: int | None


@record(frozen=True, slots=True)
class Enqueue:
    """The producer waits for its turn."""

    key: ProducerKey


@record(frozen=True, slots=True)
class Refuse:
    """The producer is refused, or will not have its turn; it is forgotten already."""

    key: ProducerKey
    code: ServerError
    message: str


@record(frozen=True, slots=True)
class CheckPredecessor:
    """Find out whether the peer of `predecessor` is still there, then PredecessorChecked."""

    key: ProducerKey
    predecessor: ProducerKey


@record(frozen=True, slots=True)
class StoreEpoch:
    """Make the topic's epoch durable, in the order of these effects; then EpochStored or EpochNotStored."""

    key: ProducerKey
    epoch: int


@record(frozen=True, slots=True)
class CloseProducer:
    """An admitted producer is fenced out and told so; already forgotten."""

    key: ProducerKey
    reason: str


@record(frozen=True, slots=True)
class ReplaceProducer:
    """A producer came back on another connection: the old one ends without a word; already forgotten."""

    key: ProducerKey


Effect: TypeAlias = Admit | Enqueue | Refuse | CheckPredecessor | StoreEpoch | CloseProducer | ReplaceProducer
