"""The consumers of a Shared or Key_Shared subscription: their permits, their unacknowledged entries, and the limits on these.

Pending entries are bitmaps per ledger. Message counts are kept apart, for batches alone: an entry without one counts as one
message. A consumer at its limit is blocked until it is down to half of it; so is the subscription (Apache: Consumer and
PersistentDispatcherMultipleConsumers). The last batch before a limit may go beyond it, since none is split.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

from pyroaring import BitMap

from wire.kernels.delivery_rows import ReceiverRow, ReceiversRow
from wire.position import Position
from wire.run import EntryRun, RunMetadata

from .contract import ConsumerAdded, ConsumerId
from .entry_sets import EntrySet
from .settings import DispatcherSettings

UNLIMITED = 1 << 62


class Receiver(ReceiverRow):
    """One consumer. `unacked_messages` is the sum of the message counts of `pending`."""

    __slots__ = ()

    consumer: ConsumerId
    pending: EntrySet

    def __init__(self, added: ConsumerAdded) -> None:
        self.consumer = added.consumer
        self.name = added.name
        self.priority_level = added.priority_level
        self.is_writable = added.is_writable
        self.permits = 0
        self.pending = EntrySet()
        self.unacked_messages = 0
        self.is_blocked = False


class Receivers(ReceiversRow):
    """All of them, in the order in which they came."""

    __slots__ = ()

    _by_id: dict[ConsumerId, Receiver]
    _message_counts: dict[int, dict[int, int]]
    """Ledger, entry: messages of a pending batch that are not acknowledged."""

    def __init__(self, settings: DispatcherSettings) -> None:
        self._by_id, self._message_counts = {}, {}
        self.unacked_messages = 0
        self.is_blocked = False
        self.limit(settings.max_unacked_messages_per_consumer, settings.max_unacked_messages_per_subscription)

    def limit(self, each: int, together: int) -> None:
        """Sets the limits. A consumer beyond them is blocked; a blocked one that is down to half of its limit is freed."""
        self._limit, self._limit_together = each or UNLIMITED, together or UNLIMITED
        for receiver in self._by_id.values():
            receiver.is_blocked = _is_blocked(receiver.is_blocked, receiver.unacked_messages, self._limit)
        self.is_blocked = _is_blocked(self.is_blocked, self.unacked_messages, self._limit_together)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Receiver]:
        return iter(self._by_id.values())

    def only(self) -> Receiver | None:
        """The receiver where there is just one."""
        return next(iter(self._by_id.values())) if len(self._by_id) == 1 else None

    def get(self, consumer: ConsumerId | None) -> Receiver | None:
        return self._by_id.get(consumer) if consumer is not None else None

    def add(self, receiver: Receiver) -> None:
        self._by_id[receiver.consumer] = receiver

    def remove(self, receiver: Receiver) -> EntrySet:
        """Removes a receiver; returns its pending entries."""
        del self._by_id[receiver.consumer]
        for ledger_id, entry_ids in receiver.pending.ledgers():
            self._uncount(receiver, ledger_id, entry_ids)
        return receiver.pending

    def room(self, receiver: Receiver) -> int:
        """Number of messages that the receiver may get now; 0 or more."""
        if self.is_blocked or receiver.is_blocked or not receiver.is_writable:
            return 0
        return max(0, min(receiver.permits, self._limit - receiver.unacked_messages, self.room_together()))

    def room_together(self) -> int:
        """Number of messages that all receivers may get now."""
        return 0 if self.is_blocked else max(0, self._limit_together - self.unacked_messages)

    def delivered(self, receiver: Receiver, ledger_id: int, entry_ids: BitMap, costs: Sequence[int] | None, total: int) -> None:
        """`costs` are parallel to the sorted `entry_ids`; None: one message each."""
        receiver.pending.add(ledger_id, entry_ids)
        receiver.permits -= total
        receiver.unacked_messages += total
        self.unacked_messages += total
        if costs is not None:
            self._message_counts.setdefault(ledger_id, {}).update(zip(entry_ids, costs, strict=True))
        receiver.is_blocked = receiver.is_blocked or receiver.unacked_messages >= self._limit
        self.is_blocked = self.is_blocked or self.unacked_messages >= self._limit_together

    def delivered_run(self, receiver: Receiver, run: EntryRun, metadata: RunMetadata) -> None:
        """Same as `delivered`, for all entries of a run."""
        messages, first, count = metadata.message_count, run.first_entry_id, len(run.offsets) - 1
        receiver.pending.add_range(run.ledger_id, first, first + count)
        receiver.permits -= messages
        receiver.unacked_messages += messages
        self.unacked_messages += messages
        if messages != count:
            counts = self._message_counts.setdefault(run.ledger_id, {})
            counts.update(zip(range(first, first + count), metadata.message_counts, strict=True))
        receiver.is_blocked = receiver.is_blocked or receiver.unacked_messages >= self._limit
        self.is_blocked = self.is_blocked or self.unacked_messages >= self._limit_together

    def acknowledged(self, ledger_id: int, entry_ids: BitMap, consumer: ConsumerId | None) -> BitMap:
        """Forgets entries of any consumer (most likely `consumer`); returns those that a consumer had."""
        likely = self.get(consumer)
        found = BitMap() if likely is None else self.taken_back(likely, ledger_id, entry_ids)
        if len(found) < len(entry_ids):
            for receiver in self._by_id.values():
                if receiver is not likely:
                    found |= self.taken_back(receiver, ledger_id, entry_ids)
        return found

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> bool:
        """Same as `acknowledged`, for one entry. False: the consumer does not have it, and nothing has changed."""
        receiver = self._by_id.get(consumer)
        if receiver is None or not receiver.pending.remove_entry(ledger_id, entry_id):
            return False
        messages = 1
        counts = self._message_counts.get(ledger_id)
        if counts is not None:
            messages = counts.pop(entry_id, 1)
            if not counts:
                del self._message_counts[ledger_id]
        self._reduce(receiver, messages)
        return True

    def taken_back(self, receiver: Receiver, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Forget those that this one has; which these were."""
        found = receiver.pending.remove(ledger_id, entry_ids)
        if found:
            self._uncount(receiver, ledger_id, found)
        return found

    def batch_indexes_acknowledged(self, position: Position, message_count: int) -> None:
        counts = self._message_counts.get(position.ledger_id, {})
        known = counts.get(position.entry_id)
        if known is None:
            return
        counts[position.entry_id] = left = max(0, known - message_count)
        for receiver in self._by_id.values():
            if position in receiver.pending:
                self._reduce(receiver, known - left)

    def clear(self) -> None:
        """Nothing is pending any more."""
        self._message_counts.clear()
        for receiver in self._by_id.values():
            receiver.pending.clear()
            self._reduce(receiver, receiver.unacked_messages)

    def _uncount(self, receiver: Receiver, ledger_id: int, entry_ids: BitMap) -> None:
        counts = self._message_counts.get(ledger_id)
        if counts is None:
            self._reduce(receiver, len(entry_ids))
            return
        self._reduce(receiver, sum(map(counts.pop, entry_ids, repeat(1))))
        if not counts:
            del self._message_counts[ledger_id]

    def _reduce(self, receiver: Receiver, messages: int) -> None:
        receiver.unacked_messages -= messages
        self.unacked_messages -= messages
        receiver.is_blocked = receiver.is_blocked and receiver.unacked_messages > self._limit // 2
        self.is_blocked = self.is_blocked and self.unacked_messages > self._limit_together // 2

    def check_invariants(self) -> None:
        counted = 0
        for receiver in self._by_id.values():
            receiver.pending.check_invariants()
            messages = 0
            for ledger_id, entry_ids in receiver.pending.ledgers():
                counts = self._message_counts.get(ledger_id, {})
                messages += sum(counts.get(entry_id, 1) for entry_id in entry_ids)
                counted += sum(entry_id in counts for entry_id in entry_ids)
            assert messages == receiver.unacked_messages, (
                f"{receiver.name}: {receiver.unacked_messages} unacked, {messages} pending"
            )
            assert receiver.is_blocked or receiver.unacked_messages < self._limit
        assert counted == sum(map(len, self._message_counts.values())), "message counts of entries that nobody has"
        assert sum(receiver.unacked_messages for receiver in self._by_id.values()) == self.unacked_messages
        assert self.is_blocked or self.unacked_messages < self._limit_together


def _is_blocked(was_blocked: bool, unacked: int, limit: int) -> bool:
    return unacked >= limit or (was_blocked and unacked > limit // 2)
