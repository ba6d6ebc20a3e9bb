"""Snapshots of aborted transactions: their records as Apache's classes write them, and what is read of a topic of them."""

import asyncio
from collections.abc import Callable, Mapping
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from broker.errors import BrokerError, ServerError
from broker.service.system_topics.event_log import OnMessage
from broker.service.topic_name import TopicName
from broker.topic.transactions.aborted import AbortedSegment, AbortedTransactions
from broker.transaction.snapshots import records
from broker.transaction.snapshots.avro_longs import BadSnapshot
from broker.transaction.snapshots.messages import UNREADABLE, Keyed, keyed_of, section_of
from broker.transaction.snapshots.schemas import Kind, schema_of
from broker.transaction.snapshots.snapshot_topic import SnapshotTopic
from broker.transaction.snapshots.topic_snapshots import SINGLE_BYTES_MAX, TopicSnapshots
from tests.broker.topic.topic_world import SetClock
from tests.managed_ledger.ledger_world import run
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section
from wire.position import Position
from wire.transactions import TxnId

TOPIC = "persistent://public/default/x"
BITS = st.integers(0, (1 << 64) - 1)
PLACES = st.builds(Position, st.integers(0, (1 << 63) - 1), st.integers(-1, (1 << 63) - 1))


def aborted_of(ids: Mapping[TxnId, int]) -> AbortedTransactions:
    """Aborted transactions, each with the ledger of its marker."""
    aborted = AbortedTransactions()
    for number, (txn_id, ledger_id) in enumerate(sorted(ids.items(), key=lambda item: item[1])):
        aborted.add(txn_id, Position(ledger_id, number))
    return aborted


@given(st.dictionaries(st.builds(TxnId, BITS, BITS), st.integers(0, 3), max_size=30), PLACES)
def test_a_whole_list_is_read_as_it_was_written(ids: dict[TxnId, int], max_read: Position) -> None:
    aborted = aborted_of(ids)
    for _ in range(2):  # the second from what was kept of the first
        again = records.decode_single(records.encode_single(TOPIC, aborted, max_read))
        assert again.max_read == max_read
        assert all(txn_id in again.aborted for txn_id in ids)
        assert len(again.aborted) == len(ids)
        for ledger_id in range(4):
            again.aborted.forget_before(ledger_id)
            assert len(again.aborted) == sum(ledger >= ledger_id for ledger in ids.values())


@given(
    st.sets(st.builds(TxnId, BITS, BITS), min_size=1, max_size=30), st.sets(st.builds(TxnId, BITS, BITS), max_size=9), PLACES
)
def test_segments_and_their_index_are_read_as_they_were_written(
    sealed: set[TxnId], loose: set[TxnId], max_read: Position
) -> None:
    aborted = aborted_of(dict.fromkeys(sealed, 7))
    aborted.seal(1)
    for txn_id in sorted(loose):
        aborted.add(txn_id, Position(8, 1))
    [segment] = aborted.sealed
    segment.place = Position(3, 4)
    again = records.decode_segment(records.encode_segment(TOPIC, segment))
    assert again == records.Segment(0, segment.last, segment.ids)
    index = records.decode_index(records.encode_index(TOPIC, [segment], records.encode_loose(aborted), max_read))
    assert index.places == (records.SegmentPlace(0, segment.last, Position(3, 4)),)
    assert index.max_read == max_read
    assert set(index.loose) == loose - sealed


@given(st.binary(max_size=40))
def test_what_is_no_record_is_told(data: bytes) -> None:
    for decode in (records.decode_single, records.decode_segment, records.decode_index):
        try:
            decode(data)
        except BadSnapshot:
            continue


_X = "3a70657273697374656e743a2f2f7075626c69632f64656661756c742f78"


def test_records_have_the_bytes_of_apaches() -> None:
    """Schema.AVRO of the classes of pulsar-broker 4.0.8, encoded by pulsar-client-original 4.0.8."""
    two = bytes.fromhex("02040c0a04020c0a8080808080400100d8040e02" + _X)
    found = records.decode_single(two)
    assert found.max_read == Position(7, 300)
    assert all(txn_id in found.aborted for txn_id in (TxnId(1, 2), TxnId((1 << 64) - 1, 1 << 40)))
    assert records.encode_single(TOPIC, found.aborted, found.max_read) == two
    none = records.decode_single(bytes.fromhex("00010e02" + _X))
    assert (len(none.aborted), none.max_read) == (0, Position(7, -1))
    segment = bytes.fromhex("0204040280808080804001000c0a0602" + _X)
    read = records.decode_segment(segment)
    assert (read.sequence_id, read.last) == (3, Position(5, 6))
    assert records.encode_segment(TOPIC, AbortedSegment(read.last, read.ids, 2, read.sequence_id)) == segment
    index = bytes.fromhex("02020c0a12100600020202040200d8040e02" + _X)
    places = (records.SegmentPlace(3, Position(5, 6), Position(8, 9)),)
    assert records.decode_index(index) == records.Index(places, (TxnId(1, 2),), Position(7, 300))
    sealed = AbortedSegment(Position(5, 6), {1: BitMap64([2])}, 1, 3, Position(8, 9))
    loose = aborted_of({TxnId(1, 2): 0})
    assert records.encode_index(TOPIC, [sealed], records.encode_loose(loose), Position(7, 300)) == index


@pytest.mark.parametrize(
    ("kind", "size", "digest"),
    [
        (Kind.SINGLE, 593, 0x6290E273),
        (Kind.SEGMENTS, 567, 0x6A3ACEE1),
        (Kind.INDEXES, 1037, 0x8E572603),
    ],
)
def test_schemas_are_those_that_apache_registers(kind: Kind, size: int, digest: int) -> None:
    """Length and CRC are of Schema.AVRO(...).getSchemaInfo() of the same version."""
    found = schema_of(kind).data
    assert (len(found), crc32(found)) == (size, digest)


def test_a_million_aborted_transactions_fit_into_messages() -> None:
    aborted = AbortedTransactions()
    for number in range(1_000_000):
        aborted.add(TxnId(number % 16, number), Position(number // 50_000, number))
        if number % 87_000 == 0:
            aborted.seal(87_000)
    aborted.seal(40_000)
    sizes = [len(records.encode_segment(TOPIC, segment)) for segment in aborted.sealed]
    assert sum(segment.count for segment in aborted.sealed) == 1_000_000
    assert max(sizes) < 1 << 20
    aborted.forget_before(19)
    assert 50_000 <= len(aborted) < 140_000
    assert TxnId(0, 0) not in aborted


# ---- a topic of them


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


def test_what_reaches_further_counts_in_whichever_form_it_is() -> None:
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


def test_whoever_waits_for_a_reading_that_is_ended_hears_of_it() -> None:
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


def test_messages_are_read_as_they_were_written_and_others_are_not_taken_for_them() -> None:
    for keyed in (Keyed("k", b"record"), Keyed("k", None)):
        assert keyed_of(section_of(keyed, "p", 5)) == keyed
    plain = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)
    assert keyed_of(payload_section(plain, b"x")) is None
    assert keyed_of(b"\0\0") is None
    plain.partition_key, plain.num_messages_in_batch = "k", 1
    assert keyed_of(payload_section(plain, b"x")) == Keyed("k", UNREADABLE)


def test_a_segment_of_which_all_is_known_already_is_as_if_it_was_gone() -> None:
    aborted = AbortedTransactions()
    for number in (4, 5):
        aborted.restore({1: BitMap64([1, 2])}, Position(1, number), number, Position(0, number))
    aborted.check_invariants()
    assert [segment.sequence_id for segment in aborted.sealed] == [4]
    assert aborted.take_gone() == [5]
    assert AbortedSegment(Position(1, 1), {1: BitMap64([7, 9])}, 2).last_id == TxnId(1, 9)
