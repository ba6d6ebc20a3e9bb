"""Snapshots of aborted transactions: their records as Apache's classes write them, and what is read of a topic of them."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from pyroaring import BitMap64

from broker.errors import BrokerError, ServerError
from broker.service.system_topics.event_log import OnMessage
from broker.service.topic_name import TopicName
from broker.topic.transactions.aborted import AbortedSegment, AbortedTransactions
from broker.transaction.snapshots.messages import Keyed, keyed_of
from broker.transaction.snapshots.schemas import Kind
from broker.transaction.snapshots.snapshot_topic import SnapshotTopic
from broker.transaction.snapshots.topic_snapshots import SINGLE_BYTES_MAX, TopicSnapshots
from tests.broker.topic.topic_world import SetClock
from tests.managed_ledger.ledger_world import run
from wire.position import Position
from wire.transactions import TxnId

TOPIC = "persistent://public/default/x"


def aborted_of(ids: Mapping[TxnId, int]) -> AbortedTransactions:
    """Aborted transactions, each with the ledger of its marker."""
    aborted = AbortedTransactions()
    for number, (txn_id, ledger_id) in enumerate(sorted(ids.items(), key=lambda item: item[1])):
        aborted.add(txn_id, Position(ledger_id, number))
    return aborted


class ListedLog:
    """An `EventLog` of messages in a list. `gate`: a reading waits for it once it has begun."""

    def __init__(self, sections: list[bytes], readings: list[int]) -> None:
        self.sections, self.readings = sections, readings
        self.gate: asyncio.Event | None = None

    async def read(self, on_message: OnMessage, on_end: Callable[[str], None]) -> Position:
        self.readings.append(len(self.sections))
        seen = list(self.sections)
        if self.gate is not None:
            await self.gate.wait()
        for number, section in enumerate(seen):
            on_message(Position(1, number), memoryview(section))
        return Position(1, len(seen) - 1)

    async def append(self, section_of: Callable[[str], bytes]) -> Position:
        self.sections.append(section_of("producer"))
        return Position(1, len(self.sections) - 1)

    def close(self) -> None:
        """Nothing is held."""


class Topics:
    """The three topics of a namespace."""

    def __init__(self) -> None:
        self.sections: dict[str, list[bytes]] = {}
        self.readings: list[int] = []
        self.gate: asyncio.Event | None = None
        self.of = {kind: SnapshotTopic(TopicName.parse(kind.value), self.open, SetClock()) for kind in Kind}

    async def open(self, topic: TopicName, is_made: bool) -> ListedLog | None:
        if not is_made and topic.local_name not in self.sections:
            return None
        log = ListedLog(self.sections.setdefault(topic.local_name, []), self.readings)
        log.gate = self.gate
        return log

    def snapshots(self, *, is_segmented: bool, name: str = TOPIC, capacity: int = 5) -> TopicSnapshots:
        return TopicSnapshots(name, self.of.__getitem__, SetClock(), is_segmented=is_segmented, segment_capacity=capacity)


def test_the_snapshot_that_reaches_further_counts_in_either_form() -> None:
    async def scenario() -> None:
        topics = Topics()
        assert await topics.snapshots(is_segmented=False).read() is None
        ids = {TxnId(1, number): number // 4 for number in range(12)}
        for number, is_segmented in enumerate((False, True, False, True)):
            aborted = aborted_of(dict(list(ids.items())[: 3 * number + 3]))
            await topics.snapshots(is_segmented=is_segmented).write(aborted, Position(9, number))
            for reader in (False, True):
                found = await topics.snapshots(is_segmented=reader).read()
                assert found is not None
                assert found.max_read == Position(9, number)
                assert len(found.aborted) == 3 * number + 3
                found.aborted.check_invariants()
        assert await topics.snapshots(is_segmented=True, name=TOPIC + "y").read() is None

    run(scenario())


def test_a_list_that_is_too_long_for_one_message_is_kept_in_segments_all_the_same() -> None:
    async def scenario() -> None:
        topics, aborted = Topics(), AbortedTransactions()
        for number in range(120_000):
            aborted.add(TxnId(3, number << 30), Position(9, number))
        store = topics.snapshots(is_segmented=False, capacity=50_000)
        await store.write(aborted, Position(9, 120_000))
        assert Kind.SINGLE.value not in topics.sections
        found = await store.read()
        assert found is not None
        assert len(found.aborted) == 120_000
        assert all(len(section) < 4 * SINGLE_BYTES_MAX for each in topics.sections.values() for section in each)

    run(scenario())


def test_a_segment_is_stored_once_and_deleted_with_its_messages() -> None:
    async def scenario() -> None:
        topics = Topics()
        store = topics.snapshots(is_segmented=True)
        aborted = AbortedTransactions()
        for number in range(20):
            aborted.add(TxnId(1, number), Position(number // 5, number))
            if number % 5 == 4:
                await store.write(aborted, Position(number // 5, number))
        keys = [keyed_of(section) for section in topics.sections[Kind.SEGMENTS.value]]
        assert [each.key for each in keys if each is not None] == [f"multiple-{number}-{TOPIC}" for number in range(4)]
        found = await store.read()
        assert found is not None
        found.aborted.forget_before(2)
        found.aborted.add(TxnId(1, 99), Position(9, 9))
        await store.write(found.aborted, Position(9, 9))
        gone = [keyed_of(section) for section in topics.sections[Kind.SEGMENTS.value][4:]]
        assert gone == [Keyed(f"multiple-{number}-{TOPIC}", None) for number in (0, 1)]
        last = await store.read()
        assert last is not None
        assert len(last.aborted) == 11
        assert [segment.sequence_id for segment in last.aborted.sealed] == [2, 3]

    run(scenario())


def test_those_who_ask_while_a_reading_is_under_way_share_the_next_one() -> None:
    async def scenario() -> None:
        topics = Topics()
        topic = topics.of[Kind.SINGLE]
        await topic.append(Keyed("a", b"old"))
        topics.gate = asyncio.Event()
        first = asyncio.create_task(topic.latest("a"))
        await asyncio.sleep(1)
        await topic.append(Keyed("a", b"new"))
        later = [asyncio.create_task(topic.latest(key)) for key in ("a", "b", "a")]
        await asyncio.sleep(1)
        assert topics.readings == [1]
        topics.gate.set()
        assert [await first, *[await each for each in later]] == [b"old", b"new", None, b"new"]
        assert topics.readings == [1, 2]

    run(scenario())


def test_a_waiting_snapshot_read_fails_when_its_topic_is_closed() -> None:
    async def scenario() -> None:
        topics = Topics()
        topic = topics.of[Kind.SINGLE]
        await topic.append(Keyed("a", b"x"))
        topics.gate = asyncio.Event()
        waiting = asyncio.create_task(topic.latest("a"))
        await asyncio.sleep(1)
        await topic.close()
        with pytest.raises(BrokerError) as refused:
            await waiting
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario())


def test_a_segment_of_which_all_is_known_already_is_as_if_it_was_gone() -> None:
    aborted = AbortedTransactions()
    for number in (4, 5):
        aborted.restore({1: BitMap64([1, 2])}, Position(1, number), number, Position(0, number))
    aborted.check_invariants()
    assert [segment.sequence_id for segment in aborted.sealed] == [4]
    assert aborted.take_gone() == [5]
    assert AbortedSegment(Position(1, 1), {1: BitMap64([7, 9])}, 2).last_id == TxnId(1, 9)
