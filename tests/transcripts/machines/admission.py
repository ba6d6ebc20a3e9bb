"""Admission of producers in transcripts: the events of `ProducerAdmission`, for producers with a name and a connection each."""

from collections.abc import Iterable, Mapping

from broker.errors import ServerError
from broker.topic.contract import AccessMode, ProducerRequest
from broker.topic.publish.admission import ProducerAdmission
from broker.topic.publish.admission_events import (
    Admit,
    CheckPredecessor,
    CloseProducer,
    Effect,
    EpochNotStored,
    EpochStored,
    Event,
    PredecessorChecked,
    ProducerArrived,
    ProducerKey,
    ProducerLeft,
    Refuse,
    StoreEpoch,
)
from tests.transcripts.transcript import Step


class Admission:
    """One topic; `with epoch= producers_max=`. `key` is the driver's number of the producer, `name` is `p` and the key."""

    def __init__(self, given: Step) -> None:
        epoch = given.number("epoch", -1)
        self._machine = ProducerAdmission(
            "orders", None if epoch < 0 else epoch, producers_max=given.number("producers_max", 0)
        )
        self._names: dict[ProducerKey, str] = {}

    def handle(self, step: Step) -> Iterable[str]:
        return map(_text, self._machine.handle(self._event(step)))

    def _event(self, step: Step) -> Event:
        key = ProducerKey(step.number("key"))
        match step.name:
            case "ProducerArrived":
                request = _request(step, key)
                self._names[key] = request.name
                return ProducerArrived(key, request)
            case "PredecessorChecked":
                return PredecessorChecked(key)
            case "EpochStored":
                return EpochStored(key, step.number("epoch"))
            case "EpochNotStored":
                return EpochNotStored(key, step.member("code", ServerError), "the ledger's metadata could not be written")
            case "ProducerLeft":
                return ProducerLeft(key, self._names[key])
        raise step.unknown()

    def state(self) -> Mapping[str, str]:
        machine = self._machine
        epoch = {} if machine.topic_epoch is None else {"topic epoch": str(machine.topic_epoch)}
        return {"admitted": str(machine.admitted_count), "waiting": str(machine.waiting_count), **epoch}

    def check_invariants(self) -> None:
        self._machine.check_invariants()


def _request(step: Step, key: ProducerKey) -> ProducerRequest:
    asked = step.number("topic_epoch", -1)
    return ProducerRequest(
        producer_id=1,
        name=step.text("name", f"p{key}"),
        name_is_generated=step.flag("name_is_generated"),
        epoch=step.number("connection_epoch", 0),
        access_mode=step.member("mode", AccessMode),
        topic_epoch=None if asked < 0 else asked,
        is_encrypted=False,
        metadata={},
        address=step.text("address", f"10.0.0.{key}:1"),
        client_version="test",
    )


def _text(effect: Effect) -> str:
    name = f"{type(effect).__name__} key={effect.key}"
    match effect:
        case Admit():
            return name if effect.topic_epoch is None else f"{name} topic_epoch={effect.topic_epoch}"
        case Refuse():
            return f"{name} {effect.code.name}: {effect.message}"
        case CheckPredecessor():
            return f"{name} predecessor={effect.predecessor}"
        case StoreEpoch():
            return f"{name} epoch={effect.epoch}"
        case CloseProducer():
            return f"{name} reason: {effect.reason}"
    return name
