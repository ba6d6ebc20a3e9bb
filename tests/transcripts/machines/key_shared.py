"""Key_Shared in transcripts: the events of its dispatcher, for consumers with names and a topic of one ledger.

`EntriesAvailable keys=` publishes entries, EntriesRead and EntriesPicked answer a Read from them as the driver does.
"""

from collections.abc import Iterable, Mapping

from pyroaring import BitMap

from broker.dispatchers import contract
from broker.dispatchers.contract import ConsumerId, Deliver, Effect, Event, KeySharedMode, KeySharedPolicy, Read
from broker.dispatchers.dispatchers import key_shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from tests.transcripts.machines.one_ledger import LEDGER, OneLedger
from tests.transcripts.transcript import Step, TranscriptError
from wire.position import Position


class KeyShared:
    """One subscription. `with keys=name:slot,...` names the keys; slots are dealt in halves, or are STICKY."""

    def __init__(self, given: Step) -> None:
        self._topic = OneLedger({name: int(slot) for name, _, slot in (each.partition(":") for each in given.texts("keys"))})
        settings = DispatcherSettings(
            subscription_key_shared_use_consistent_hashing=False,
            max_unacked_messages_per_consumer=given.number("max_unacked", 0),
            key_shared_look_ahead_msg_in_replay_threshold_per_consumer=given.number("look_ahead", 1000),
        )
        self._dispatcher = key_shared_dispatcher(settings)
        self._names: dict[ConsumerId, str] = {}

    def handle(self, step: Step) -> Iterable[str]:
        effects = self._dispatcher.handle(self._event(step), step.number("at_ms", 0))
        return [self._text(effect) for effect in effects]

    def _event(self, step: Step) -> Event:
        match step.name:
            case "EntriesAvailable":
                self._topic.keys += step.texts("keys")
                return contract.EntriesAvailable()
            case "EntriesRead":
                self._topic.pending = step.numbers("pending")
                return self._topic.run_for(step.number("id"), step.number("max", 0))
            case "EntriesPicked":
                return self._topic.picks_for(step.number("id"))
            case "NothingToRead":
                return contract.NothingToRead(step.number("id"))
            case "ReadFailed":
                return contract.ReadFailed(step.number("id"))
            case "TimerFired":
                return contract.TimerFired()
        return self._event_of_the_cursor(step)

    def _event_of_the_cursor(self, step: Step) -> Event:
        acknowledged, entries = self._topic.acknowledged, step.numbers("entries")
        match step.name:
            case "EntriesAcknowledged":
                acknowledged.update(entries)
                return contract.EntriesAcknowledged(LEDGER, BitMap(entries), self._consumer(step))
            case "EntriesReturned":
                return contract.EntriesReturned(LEDGER, BitMap(entries))
            case "MarkDeleteMoved":
                acknowledged.update(range(step.number("to") + 1))
                return contract.MarkDeleteMoved(Position(LEDGER, step.number("to")))
            case "CursorReset":
                self._topic.acknowledged = set(range(step.number("to")))
                return contract.CursorReset()
            case "RedeliveryRequested":
                return contract.RedeliveryRequested(self._consumer(step), [Position(LEDGER, each) for each in entries] or None)
        return self._event_of_a_consumer(step)

    def _event_of_a_consumer(self, step: Step) -> Event:
        match step.name:
            case "ConsumerAdded":
                return self._added(step)
            case "ConsumerRemoved":
                return contract.ConsumerRemoved(self._consumer(step))
            case "PermitsAdded":
                return contract.PermitsAdded(self._consumer(step), step.number("permits"))
            case "WritabilityChanged":
                return contract.WritabilityChanged(self._consumer(step), step.flag("is_writable"))
        raise step.unknown()

    def _added(self, step: Step) -> contract.ConsumerAdded:
        consumer, name = ConsumerId(len(self._names) + 1), step.text("name")
        self._names[consumer] = name
        ranges = [(int(low), int(high)) for low, _, high in (each.partition("-") for each in step.texts("ranges"))]
        mode = KeySharedMode.STICKY if ranges else KeySharedMode.AUTO_SPLIT
        return contract.ConsumerAdded(consumer, name, key_shared=KeySharedPolicy(mode), hash_ranges=tuple(ranges))

    def _consumer(self, step: Step) -> ConsumerId:
        """The newest consumer of that name."""
        name = step.text("name")
        found = [consumer for consumer, known in self._names.items() if known == name]
        if not found:
            raise TranscriptError(f"{step.name}: no consumer {name} was added")
        return found[-1]

    def _text(self, effect: Effect) -> str:
        match effect:
            case Read():
                return f"Read id={effect.read_id} {self._topic.asked(effect)}"
            case Deliver():
                entries = [effect.run.first_entry_id + index for index in effect.indexes]
                named = ",".join(f"{entry}:{self._topic.keys[entry]}" for entry in entries)
                counts = effect.redelivery_counts
                again = "" if counts is None else f" redelivery_counts={','.join(map(str, counts))}"
                return f"Deliver to={self._names[effect.consumer]} entries={named}{again}"
            case contract.RefuseConsumer():
                return f"RefuseConsumer name={self._names[effect.consumer]} {effect.code.name}: {effect.message}"
            case contract.SetTimer():
                return f"SetTimer at_ms={effect.at_ms}"
        return str(effect)

    def state(self) -> Mapping[str, str]:
        whole = self._dispatcher.state()
        state: dict[str, str] = {}
        for consumer, name in self._names.items():
            found = self._dispatcher.consumer_state(consumer)
            if found is not None:
                ranges = " ".join(f"{low}-{high}" for low, high in found.hash_ranges) or "none"
                blocked = ", blocked" if found.is_blocked_on_unacked else ""
                state[name] = f"slots {ranges}, permits {found.permits}, unacknowledged {found.unacked_messages}{blocked}"
        if whole.entries_in_replay:
            state["waiting entries"] = str(whole.entries_in_replay)
        if whole.draining_hashes:
            state["draining slots"] = str(whole.draining_hashes)
        return state

    def check_invariants(self) -> None:
        self._dispatcher.check_invariants()
