"""Transactions of a coordinator in transcripts: decisions as events, the records they write into the log as effects.

The adapter has the log. `Stored` and `Ended` are the two calls that follow a durable record; `Restarted` is a new machine
that replays the records that were stored and not deleted.
"""

from collections.abc import Iterable, Mapping, Sequence

from broker.errors import BrokerError
from broker.transaction.machine import Transaction, TransactionMachine
from broker.transaction.records import (
    Opened,
    Participant,
    PartitionsAdded,
    Place,
    Record,
    StatusChanged,
    SubscriptionsAdded,
    TxnSubscription,
)
from tests.transcripts.transcript import Step
from wire.position import Position
from wire.transactions import TxnAction


class Coordinator:
    """Coordinator 0; `with active_max=`. A topic is a word, a subscription `topic/name`."""

    def __init__(self, given: Step) -> None:
        self._active_max = given.number("active_max", 0)
        self._machine = TransactionMachine(0, self._active_max)
        self._log: dict[int, tuple[Record, int]] = {}
        """Records by entry, each with the last sequence number when it was written."""
        self._stored: dict[int, None] = {}

    def handle(self, step: Step) -> Iterable[str]:
        try:
            return self._decide(step) if step.name in _DECISIONS else self._follow(step)
        except BrokerError as error:
            return [f"! {error.code.name}: {error.message.strip()}"]

    def _decide(self, step: Step) -> list[str]:
        machine = self._machine
        record: Record | None
        match step.name:
            case "Open":
                owner = step.text("owner", "") or None
                record = machine.open(owner, step.number("timeout_ms"), step.number("at_ms"))
            case "AddPartitions":
                record = machine.add_partitions(step.number("txn"), step.texts("topics"))
            case "AddSubscriptions":
                names = [TxnSubscription(*name.split("/")) for name in step.texts("subscriptions")]
                record = machine.add_subscriptions(step.number("txn"), names)
            case "End":
                record = machine.end(step.number("txn"), step.member("action", TxnAction))
            case _:
                record = machine.finish(step.number("txn"), [_participant(name) for name in step.texts("against")])
        return [] if record is None else [self._write(record)]

    def _write(self, record: Record) -> str:
        entry = len(self._log)
        self._log[entry] = record, self._machine.last_sequence
        return f"Write entry={entry} {_text(record)}"

    def _follow(self, step: Step) -> list[str]:
        match step.name:
            case "Stored":
                for entry in step.numbers("entries"):
                    self._stored[entry] = None
                    self._machine.stored(self._log[entry][0], _place(entry))
                return []
            case "Ended":
                return self._delete(self._machine.ended(step.number("txn")))
            case "TimerFired":
                return [self._abort(least) for least in self._machine.due(step.number("at_ms"))]
            case "AskedForOwner":
                return [f"Owner {self._machine.owner(step.number('txn')) or '(everybody)'}"]
            case "Restarted":
                return self._restart()
        raise step.unknown()

    def _abort(self, least: int) -> str:
        """Aborts a transaction whose time is up, as the driver does before anything else happens."""
        record = self._machine.end(least, TxnAction.ABORT)
        assert record is not None
        return self._write(record)

    def _restart(self) -> list[str]:
        self._machine = TransactionMachine(0, self._active_max)
        lines: list[str] = []
        for entry in list(self._stored):
            record, last_sequence = self._log[entry]
            lines += self._delete(self._machine.replay(record, _place(entry), last_sequence))
        return lines

    def _delete(self, places: Sequence[Place]) -> list[str]:
        entries = [place.position.entry_id for place in places]
        for entry in entries:
            del self._stored[entry]
        return [f"Delete entries={','.join(map(str, entries))}"] if entries else []

    def state(self) -> Mapping[str, str]:
        machine = self._machine
        state = {"low water mark": str(machine.low_water_mark)}
        due_ms = machine.next_due_ms()
        if due_ms is not None:
            state["timer"] = f"{due_ms} ms"
        return state | {f"txn {each.least}": _state(each) for each in machine.active()}

    def check_invariants(self) -> None:
        self._machine.check_invariants()


_DECISIONS = {"Open", "AddPartitions", "AddSubscriptions", "End", "Finish"}


def _place(entry: int) -> Place:
    return Place(Position(0, entry))


def _participant(name: str) -> Participant:
    return TxnSubscription(*name.split("/")) if "/" in name else name


def _state(transaction: Transaction) -> str:
    names = [*transaction.partitions, *map("/".join, transaction.subscriptions)]
    owner = "" if transaction.owner is None else f", of {transaction.owner}"
    return f"{transaction.status.name}{owner}" + (f", at {' '.join(names)}" if names else "")


def _text(record: Record) -> str:
    match record:
        case Opened():
            return f"Opened txn={record.least} until_ms={record.start_ms + record.timeout_ms}"
        case PartitionsAdded():
            return f"PartitionsAdded txn={record.least} topics={','.join(record.partitions)}"
        case SubscriptionsAdded():
            return f"SubscriptionsAdded txn={record.least} subscriptions={','.join(map('/'.join, record.subscriptions))}"
        case StatusChanged():
            against = [*record.partitions, *map("/".join, record.subscriptions)]
            return f"StatusChanged txn={record.least} {record.expected.name}->{record.new.name}" + (
                f" against={','.join(against)}" if against else ""
            )
