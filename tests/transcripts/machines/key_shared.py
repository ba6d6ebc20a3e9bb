"""Key_Shared in transcripts: the events of its dispatcher, for a topic with one ledger and entries of one message each.

The adapter has the topic: `EntriesAvailable keys=` publishes entries, EntriesRead answers a Read from them as the driver does.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

from pyroaring import BitMap

from broker.dispatchers import contract
from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    Deliver,
    Effect,
    EntriesAcknowledged,
    EntriesPicked,
    EntriesRead,
    Event,
    KeySharedMode,
    KeySharedPolicy,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    SetTimer,
)
from broker.dispatchers.dispatchers import key_shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from tests.transcripts.transcript import Step, TranscriptError
from wire.position import Position
from wire.run import EntryRun, RunMetadata

LEDGER = 1


class KeyShared:
    """One subscription. `with keys=name:slot,...` names the keys; slots are dealt in halves, or are STICKY."""

    def __init__(self, given: Step) -> None:
        self._slots = {name: int(slot) for name, _, slot in (each.partition(":") for each in given.texts("keys"))}
        settings = DispatcherSettings(
            subscription_key_shared_use_consistent_hashing=False,
            max_unacked_messages_per_consumer=given.number("max_unacked", 0),
            key_shared_look_ahead_msg_in_replay_threshold_per_consumer=given.number("look_ahead", 1000),
        )
        self._dispatcher = key_shared_dispatcher(settings)
        self._names: dict[ConsumerId, str] = {}
        self._keys: list[str] = []
        """Key of each entry."""
        self._acknowledged: set[int] = set()
        self._reads: dict[int, Read] = {}

    def handle(self, step: Step) -> Iterable[str]:
        effects = self._dispatcher.handle(self._event(step), step.number("at_ms", 0))
        return [self._text(effect) for effect in effects]

    def _event(self, step: Step) -> Event:
        match step.name:
            case "ConsumerAdded":
                return self._added(step)
            case "ConsumerRemoved":
                return contract.ConsumerRemoved(self._consumer(step))
            case "PermitsAdded":
                return PermitsAdded(self._consumer(step), step.number("permits"))
            case "WritabilityChanged":
                return contract.WritabilityChanged(self._consumer(step), step.flag("is_writable"))
            case "RedeliveryRequested":
                positions = [Position(LEDGER, entry) for entry in step.numbers("entries")]
                return RedeliveryRequested(self._consumer(step), positions or None)
            case "EntriesAcknowledged":
                entries = step.numbers("entries")
                self._acknowledged.update(entries)
                return EntriesAcknowledged(LEDGER, BitMap(entries), self._consumer(step))
            case "CursorReset":
                self._acknowledged = set(range(step.number("to")))
                return contract.CursorReset()
            case "TimerFired":
                return contract.TimerFired()
        return self._event_of_the_log(step)

    def _event_of_the_log(self, step: Step) -> Event:
        match step.name:
            case "EntriesAvailable":
                self._keys += step.texts("keys")
                return contract.EntriesAvailable()
            case "EntriesRead":
                read = self._read(step)
                first = self._mark_delete() + 1 if read.position is None else read.position.entry_id
                return self._answer(read, first, min(first + step.number("max", read.entries_max), len(self._keys)))
            case "EntriesPicked":
                read = self._read(step)
                picks = [entry for _, entries in read.picks or () for entry in entries]
                return EntriesPicked(read.read_id, [self._answer(read, entry, entry + 1) for entry in picks])
            case "NothingToRead":
                return contract.NothingToRead(step.number("id"))
            case "ReadFailed":
                return contract.ReadFailed(step.number("id"))
        raise step.unknown()

    def _added(self, step: Step) -> ConsumerAdded:
        consumer, name = ConsumerId(len(self._names) + 1), step.text("name")
        self._names[consumer] = name
        ranges = [(int(low), int(high)) for low, _, high in (each.partition("-") for each in step.texts("ranges"))]
        mode = KeySharedMode.STICKY if ranges else KeySharedMode.AUTO_SPLIT
        return ConsumerAdded(consumer, name, key_shared=KeySharedPolicy(mode), hash_ranges=tuple(ranges))

    def _consumer(self, step: Step) -> ConsumerId:
        """The newest consumer of that name."""
        name = step.text("name")
        found = [consumer for consumer, known in self._names.items() if known == name]
        if not found:
            raise TranscriptError(f"{step.name}: no consumer {name} was added")
        return found[-1]

    def _read(self, step: Step) -> Read:
        number = step.number("id")
        if number not in self._reads:
            raise TranscriptError(f"{step.name}: there was no Read id={number}")
        read = self._reads[number]
        if (read.picks is not None) is not (step.name == "EntriesPicked"):
            raise TranscriptError(f"{step.name}: Read id={number} {'has picks' if read.picks else 'has no picks'}")
        return read

    def _mark_delete(self) -> int:
        return next(entry for entry in range(len(self._keys) + 1) if entry not in self._acknowledged) - 1

    def _answer(self, read: Read, first: int, end: int) -> EntriesRead:
        count = end - first
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * count + 4)))
        metadata = RunMetadata(array("I", [1] * count), array("B", bytes(count)), 0, count)
        hashes = array("I", [self._slots[key] for key in self._keys[first:end]])
        mark_delete, is_last = Position(LEDGER, self._mark_delete()), end == len(self._keys)
        return EntriesRead(read.read_id, run, metadata, mark_delete, BitMap(self._acknowledged), {}, hashes, is_last)

    # --- lines ----------------------------------------------------------------------------------------------------------

    def _text(self, effect: Effect) -> str:
        match effect:
            case Read():
                self._reads[effect.read_id] = effect
                return f"Read id={effect.read_id} {_place(effect)}"
            case Deliver():
                entries = [effect.run.first_entry_id + index for index in effect.indexes]
                counts = effect.redelivery_counts
                again = "" if counts is None else f" redelivery_counts={_numbers(counts)}"
                named = ",".join(f"{entry}:{self._keys[entry]}" for entry in entries)
                return f"Deliver to={self._names[effect.consumer]} entries={named}{again}"
            case RefuseConsumer():
                return f"RefuseConsumer name={self._names[effect.consumer]} {effect.code.name}: {effect.message}"
            case SetTimer():
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


def _place(read: Read) -> str:
    if read.picks is not None:
        return f"picks={_numbers([entry for _, entries in read.picks for entry in entries])}"
    start = "cursor" if read.position is None else str(read.position.entry_id)
    return f"from={start} max={read.entries_max}{' again' if read.is_replay else ''}"


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
