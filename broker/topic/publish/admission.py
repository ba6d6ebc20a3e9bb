"""Admission of producers: the access modes, the topic epoch and the producers that wait for their turn. Pure.

Follows AbstractTopic of Apache. Differences: a producer that ExclusiveWithFencing would refuse for its old epoch harms no
producer (there it first ends the others), and an exclusive producer that comes back before its old connection was missed
replaces itself (there it is refused, for ever with some clients), known by the epoch that only it was given. Before a producer
is refused because of another one, that one's connection is checked: for a name as in Apache, and also for an exclusive
producer.

An epoch is granted after it is stored, never before.
"""

from dataclasses import dataclass
from typing import assert_never

from broker.errors import ServerError

from ..contract import AccessMode, ProducerRequest
from .admission_events import (
    Admit,
    CheckPredecessor,
    CloseProducer,
    Effect,
    Enqueue,
    EpochNotStored,
    EpochStored,
    Event,
    PredecessorChecked,
    ProducerArrived,
    ProducerKey,
    ProducerLeft,
    Refuse,
    ReplaceProducer,
    StoreEpoch,
)


@dataclass(frozen=True, slots=True)
class _Member:
    key: ProducerKey
    request: ProducerRequest


class ProducerAdmission:
    """The producers of one topic. At most one of `owner` and `_claim`; with either of them no other producer is admitted."""

    def __init__(self, topic: str, topic_epoch: int | None, *, producers_max: int = 0, same_address_max: int = 0) -> None:
        self._topic = topic
        self.producers_max = producers_max
        """Maximum for producers that come from now on; 0: no limit."""
        self._same_address_max = same_address_max
        self._admitted: dict[str, _Member] = {}
        self._owner: _Member | None = None
        self._claim: _Member | None = None
        self._waiting: list[_Member] = []
        self._checking: dict[ProducerKey, _Member] = {}
        """Producers whose refusal depends on another producer being alive."""
        self._epoch_asked = -1 if topic_epoch is None else topic_epoch
        self.topic_epoch = topic_epoch

    @property
    def admitted_count(self) -> int:
        return len(self._admitted)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def handle(self, event: Event) -> list[Effect]:
        match event:
            case ProducerArrived(key, request):
                return self._on_arrived(_Member(key, request))
            case PredecessorChecked(key):
                checked = self._checking.pop(key, None)
                return [] if checked is None else self._arrive(checked)
            case EpochStored(key, epoch):
                return self._on_stored(key, epoch)
            case EpochNotStored(key, code, message):
                return self._on_not_stored(key, code, message)
            case ProducerLeft(key, name):
                return self._on_left(key, name)
            case _:
                assert_never(event)

    def _on_arrived(self, member: _Member) -> list[Effect]:
        old = self._admitted.get(member.request.name)
        if old is not None and self._is_successor(member.request, old.request):
            return self._replace(old, member)
        other = self._in_the_way(member)
        if other is None:
            return self._arrive(member)
        self._checking[member.key] = member
        return [CheckPredecessor(member.key, other.key)]

    def _in_the_way(self, member: _Member) -> _Member | None:
        """On another connection, and the only one for whose sake it would be refused; it is asked once for each arrival."""
        request = member.request
        if request.access_mode in (AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING) or self._is_stale(member):
            return None
        other = self._owner or self._admitted.get(request.name)
        return None if other is None or other.request.address == request.address else other

    def _arrive(self, member: _Member) -> list[Effect]:
        match member.request.access_mode:
            case AccessMode.SHARED:
                return self._arrive_shared(member)
            case AccessMode.EXCLUSIVE:
                return self._arrive_exclusive(member)
            case AccessMode.WAIT_FOR_EXCLUSIVE:
                return self._arrive_waiting(member)
            case AccessMode.EXCLUSIVE_WITH_FENCING:
                return self._arrive_fencing(member)
            case _:
                assert_never(member.request.access_mode)

    def _is_successor(self, new: ProducerRequest, old: ProducerRequest) -> bool:
        """Whether it is the same producer, which has lost its connection before we noticed."""
        if new.epoch <= old.epoch or (new.access_mode is AccessMode.SHARED) != (old.access_mode is AccessMode.SHARED):
            return False
        if old.access_mode is not AccessMode.SHARED and new.topic_epoch is not None:
            return new.topic_epoch == self.topic_epoch
        same_place = new.address == old.address and new.producer_id == old.producer_id
        return same_place or (new.name_is_generated and old.name_is_generated)

    def _replace(self, old: _Member, member: _Member) -> list[Effect]:
        del self._admitted[old.request.name]
        if self._owner is None:
            return [ReplaceProducer(old.key), *self._admit(member)]
        self._owner = None
        return [ReplaceProducer(old.key), *self._take_claim(member)]

    def _arrive_shared(self, member: _Member) -> list[Effect]:
        if self._is_taken() or self._waiting:
            return [self._refusal(member, ServerError.PRODUCER_BUSY, self._exclusive_message())]
        return self._admit(member)

    def _arrive_exclusive(self, member: _Member) -> list[Effect]:
        if self._is_taken() or self._waiting:
            return [self._refusal(member, ServerError.PRODUCER_FENCED, self._exclusive_message())]
        if self._admitted:
            return [self._refusal(member, ServerError.PRODUCER_FENCED, "Topic has existing shared producers")]
        return self._claim_unless_stale(member)

    def _arrive_waiting(self, member: _Member) -> list[Effect]:
        if not self._is_taken() and not self._admitted:
            return self._claim_unless_stale(member)
        for index, old in enumerate(self._waiting):
            if old.request.name == member.request.name and self._is_successor(member.request, old.request):
                self._waiting[index] = member
                return [ReplaceProducer(old.key), Enqueue(member.key)]
        self._waiting.append(member)
        return [Enqueue(member.key)]

    def _arrive_fencing(self, member: _Member) -> list[Effect]:
        if self._is_stale(member):
            return [self._stale_refusal(member)]
        effects: list[Effect] = []
        if self._is_taken() or self._admitted:
            effects.extend(self._fence_out(member.request.name))
        effects.extend(self._take_claim(member))
        return effects

    def _fence_out(self, by: str) -> list[Effect]:
        """Ends all producers: waiting ones and those about to be admitted, then the admitted ones."""
        pending = [*self._waiting, *([self._claim] if self._claim else [])]
        effects: list[Effect] = [self._refusal(member, ServerError.PRODUCER_FENCED, "Fenced out") for member in pending]
        effects.extend(CloseProducer(member.key, f"fenced out by producer {by}") for member in self._admitted.values())
        self._waiting.clear()
        self._admitted.clear()
        self._claim = self._owner = None
        return effects

    def _claim_unless_stale(self, member: _Member) -> list[Effect]:
        return [self._stale_refusal(member)] if self._is_stale(member) else self._take_claim(member)

    def _take_claim(self, member: _Member) -> list[Effect]:
        """Gives the topic to this producer, as soon as its epoch is stored: there is no other producer."""
        asked = member.request.topic_epoch
        if asked is not None and asked == self.topic_epoch and asked == self._epoch_asked:
            self._owner = member
            return self._admit(member)
        epoch = asked if asked is not None and asked > self._epoch_asked else self._epoch_asked + 1
        self._epoch_asked = epoch
        self._claim = member
        return [StoreEpoch(member.key, epoch)]

    def _admit(self, member: _Member) -> list[Effect]:
        refusal = self._limit_refusal(member)
        if refusal is not None:
            return [refusal]
        self._admitted[member.request.name] = member
        return [Admit(member.key, self.topic_epoch)]

    def _limit_refusal(self, member: _Member) -> Refuse | None:
        name = member.request.name
        message = None
        if name in self._admitted:
            message = f"Producer with name '{name}' is already connected to topic '{self._topic}'"
        elif 0 < self.producers_max <= len(self._admitted):
            message = f"Topic '{self._topic}' reached max producers limit"
        elif self._same_address_max > 0:
            host = _host(member.request.address)
            if sum(_host(other.request.address) == host for other in self._admitted.values()) >= self._same_address_max:
                message = f"Topic '{self._topic}' reached max same address producers limit"
        return None if message is None else self._refusal(member, ServerError.PRODUCER_BUSY, message)

    def _on_stored(self, key: ProducerKey, epoch: int) -> list[Effect]:
        self.topic_epoch = epoch if self.topic_epoch is None else max(epoch, self.topic_epoch)
        if self._claim is None or self._claim.key != key:
            return []
        self._owner, self._claim = self._claim, None
        return self._admit(self._owner)

    def _on_not_stored(self, key: ProducerKey, code: ServerError, message: str) -> list[Effect]:
        if self._claim is None or self._claim.key != key:
            return []
        refused, self._claim = self._claim, None
        return [self._refusal(refused, code, message), *self._promote()]

    def _on_left(self, key: ProducerKey, name: str) -> list[Effect]:
        self._waiting = [member for member in self._waiting if member.key != key]
        self._checking.pop(key, None)
        if self._claim is not None and self._claim.key == key:
            self._claim = None
        if self._owner is not None and self._owner.key == key:
            self._owner = None
        admitted = self._admitted.get(name)
        if admitted is not None and admitted.key == key:
            del self._admitted[name]
        return self._promote()

    def _promote(self) -> list[Effect]:
        """Admits the next waiting one, if no producer publishes."""
        effects: list[Effect] = []
        while self._waiting and not self._is_taken() and not self._admitted:
            effects.extend(self._claim_unless_stale(self._waiting.pop(0)))
        return effects

    def _is_taken(self) -> bool:
        return self._owner is not None or self._claim is not None

    def _is_stale(self, member: _Member) -> bool:
        """Whether other producers had the topic after this one, which then must not go on as if it had never lost it."""
        asked = member.request.topic_epoch
        return asked is not None and asked < self._epoch_asked

    def _stale_refusal(self, member: _Member) -> Refuse:
        asked, current = member.request.topic_epoch, self._epoch_asked
        message = f"Topic epoch has already moved. Current epoch: {current}, Producer epoch: {asked}"
        return self._refusal(member, ServerError.PRODUCER_FENCED, message)

    def _exclusive_message(self) -> str:
        holder = self._owner or self._claim or self._waiting[0]
        return f"Topic has an existing exclusive producer: {holder.request.name}"

    @staticmethod
    def _refusal(member: _Member, code: ServerError, message: str) -> Refuse:
        return Refuse(member.key, code, message)

    def check_invariants(self) -> None:
        assert self._owner is None or self._claim is None
        assert self._owner is None or list(self._admitted.values()) == [self._owner]
        assert self._claim is None or not self._admitted
        assert not self._waiting or self._is_taken() or self._admitted
        assert self.topic_epoch is None or self.topic_epoch <= self._epoch_asked
        assert not any(member.key in self._checking for member in (*self._admitted.values(), *self._waiting))


def _host(address: str) -> str:
    return address.rpartition(":")[0] or address
