"""Shared and Key_Shared where transactions are aborted: their entries are delivered again, and no others."""

from array import array
from random import Random

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    Deliver,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    EntriesReturned,
    Event,
    NothingToRead,
    PermitsAdded,
    Read,
)
from broker.dispatchers.dispatchers import key_shared_dispatcher, shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from wire.position import Position
from wire.run import EntryRun, RunMetadata

LEDGER = 3


class AbortedTransactions:
    """A topic whose entries are acknowledged for good, or in a transaction that is aborted later."""

    def __init__(self, seed: int, *, is_key_shared: bool) -> None:
        self.rng = Random(seed)
        self.is_key_shared = is_key_shared
        settings = DispatcherSettings(subscription_key_shared_use_consistent_hashing=False)
        self.dispatcher = key_shared_dispatcher(settings) if is_key_shared else shared_dispatcher(settings)
        self.slots: list[int] = []
        self.holders: dict[int, ConsumerId] = {}
        """Entries that a consumer has."""
        self.acknowledged: set[int] = set()
        self.pending: set[int] = set()
        """Entries acknowledged in a transaction that is not decided."""
        self.consumers: list[ConsumerId] = []
        self.joined = 0
        self.read: Read | None = None

    def feed(self, event: Event) -> None:
        effects = self.dispatcher.handle(event, 0)
        self.dispatcher.check_invariants()
        for effect in effects:
            if isinstance(effect, Read):
                self.read = effect
            elif isinstance(effect, Deliver):
                for index in effect.indexes:
                    self.deliver(effect.run.first_entry_id + index, effect.consumer)

    def deliver(self, entry: int, consumer: ConsumerId) -> None:
        assert entry not in self.holders, "delivered twice"
        assert entry not in self.acknowledged | self.pending
        if not self.is_key_shared:
            self.holders[entry] = consumer
            return
        others = {self.holders[each] for each in self.holders if self.slots[each] == self.slots[entry]}
        assert others <= {consumer}, "two consumers have one key"
        self.holders[entry] = consumer

    def step(self) -> None:
        match self.rng.choice(["publish", "join", "leave", "acknowledge", "begin", "abort", "answer", "answer", "answer"]):
            case "publish":
                self.slots += self.rng.choices((5, 20_000, 40_000, 60_000), k=self.rng.randint(1, 4))
                self.feed(EntriesAvailable())
            case "join" if len(self.consumers) < 3:
                self.join()
            case "leave" if len(self.consumers) > 1:
                gone = self.consumers.pop(self.rng.randrange(len(self.consumers)))
                self.holders = {entry: holder for entry, holder in self.holders.items() if holder != gone}
                self.feed(ConsumerRemoved(gone))
            case "acknowledge" if held := sorted(self.holders.keys() - self.pending):
                self.acknowledge(self.rng.choice(held))
            case "begin" if held := sorted(self.holders.keys() - self.pending):
                self.pending.add(self.rng.choice(held))
            case "abort":
                self.abort()
            case "answer" if self.read is not None:
                self.answer(self.read)

    def join(self) -> None:
        self.joined += 1
        consumer = ConsumerId(self.joined)
        self.consumers.append(consumer)
        self.feed(ConsumerAdded(consumer, f"c{consumer}"))
        self.feed(PermitsAdded(consumer, self.rng.choice((2, 1000))))

    def acknowledge(self, entry: int) -> None:
        self.acknowledged.add(entry)
        self.feed(EntriesAcknowledged(LEDGER, BitMap([entry]), self.holders.pop(entry)))

    def abort(self) -> None:
        returned, self.pending = self.pending, set()
        for entry in returned:
            self.holders.pop(entry, None)
        if returned:
            self.feed(EntriesReturned(LEDGER, BitMap(returned)))

    def answer(self, read: Read) -> None:
        self.read = None
        if read.picks is not None:
            ((_, picks),) = read.picks
            self.feed(EntriesPicked(read.read_id, [self._run(read.read_id, each, each + 1) for each in picks]))
            return
        first = self._mark_delete() + 1 if read.position is None else read.position.entry_id
        end = min(first + read.entries_max, len(self.slots))
        self.feed(self._run(read.read_id, first, end) if end > first else NothingToRead(read.read_id))

    def _mark_delete(self) -> int:
        return next(entry for entry in range(len(self.slots) + 1) if entry not in self.acknowledged) - 1

    def _run(self, read_id: int, first: int, end: int) -> EntriesRead:
        count = end - first
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * count + 4)))
        metadata = RunMetadata(array("I", [1] * count), array("B", bytes(count)), 0, count)
        gone = BitMap(self.acknowledged | self.pending)
        mark_delete, hashes = Position(LEDGER, self._mark_delete()), array("I", self.slots[first:end])
        return EntriesRead(read_id, run, metadata, mark_delete, gone, {}, hashes, end == len(self.slots))

    def settle(self) -> None:
        """Aborts what is open, and lets consumers take and acknowledge everything."""
        self.abort()
        if not self.consumers:
            self.join()
        for _ in range(1000):
            for consumer in self.consumers:
                self.feed(PermitsAdded(consumer, 10))
            while self.read is not None:
                self.answer(self.read)
            if not self.holders:
                return
            for entry in sorted(self.holders):
                self.acknowledge(entry)
        raise AssertionError("the subscription does not come to rest")


@pytest.mark.parametrize("is_key_shared", [False, True])
@pytest.mark.parametrize("first_seed", range(0, 500, 100))
def test_only_the_entries_of_an_aborted_transaction_are_delivered_again(first_seed: int, is_key_shared: bool) -> None:
    for seed in range(first_seed, first_seed + 100):
        topic = AbortedTransactions(seed, is_key_shared=is_key_shared)
        for _ in range(60):
            topic.step()
        topic.settle()
        assert topic.acknowledged == set(range(len(topic.slots))), f"seed {seed}"
