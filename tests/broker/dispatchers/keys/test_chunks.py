"""Messages in chunks among several consumers, Shared and Key_Shared: each comes whole to one of them, whatever happens."""

import random
import zlib
from array import array
from collections.abc import Callable

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    Deliver,
    Dispatcher,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    Event,
    NothingToRead,
    PermitsAdded,
    Read,
    RedeliveryRequested,
)
from broker.dispatchers.dispatchers import key_shared_dispatcher, shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.kernels.metadata import scan
from wire.payloads import payload_section
from wire.position import Position
from wire.run import EntryRun

LEDGER = 5
SEEDS = 150
RUN_ENTRIES = 7
READS_MAX = 500

Piece = tuple[str, int, int]
"""Message, index of the chunk, number of chunks; with 1 chunk the message is in one piece."""


def section(piece: Piece) -> bytes:
    uuid, index, count = piece
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    if count > 1:
        metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size = uuid, index, count, 9
    return payload_section(metadata, b"x")


OfKind = Callable[[DispatcherSettings], Dispatcher]
SLOTS = 5
"""Few, so that messages share them."""


def key_hash(piece: Piece) -> int:
    return 1 + zlib.crc32(piece[0].encode()) % SLOTS * (65535 // SLOTS)


class Client:
    """Puts messages together as clients do: a chunk that is not the next one of its message is of no use."""

    def __init__(self) -> None:
        self.whole: list[list[int]] = []
        """The entries of each message that it has and has not acknowledged."""
        self.useless: list[Piece] = []
        self.permits_owed = 0
        self._parts: dict[str, list[int]] = {}
        self._next: dict[str, int] = {}

    def take(self, entry_id: int, piece: Piece) -> None:
        uuid, index, count = piece
        if index == 0:
            self._parts[uuid] = []
        elif self._next.get(uuid) != index:
            self.useless.append(piece)
            return
        self._next[uuid] = index + 1
        self._parts[uuid].append(entry_id)
        if index + 1 < count:
            self.permits_owed += 1
        else:
            self.whole.append(self._parts.pop(uuid))
            del self._next[uuid]


class Group:
    """The dispatcher, the log, and the clients."""

    def __init__(self, pieces: list[Piece], of_kind: OfKind = shared_dispatcher) -> None:
        self.dispatcher = of_kind(DispatcherSettings())
        self.pieces, self.confirmed = pieces, len(pieces)
        self.clients: dict[ConsumerId, Client] = {}
        self.acknowledged = BitMap()
        self._last_consumer = 0
        self._read: Read | None = None

    def join(self, permits: int) -> ConsumerId:
        self._last_consumer += 1
        consumer = ConsumerId(self._last_consumer)
        self.clients[consumer] = Client()
        self._feed(ConsumerAdded(consumer, f"c{consumer}"))
        self._feed(PermitsAdded(consumer, permits))
        return consumer

    def leave(self, consumer: ConsumerId) -> None:
        self._feed(ConsumerRemoved(consumer))
        del self.clients[consumer]

    def acknowledge(self, consumer: ConsumerId, entries: list[int]) -> None:
        """Acknowledges the entries, and gives permits for as many messages more."""
        self.acknowledged |= BitMap(entries)
        self._feed(EntriesAcknowledged(LEDGER, BitMap(entries), consumer))
        self._feed(PermitsAdded(consumer, 1))

    def refuse(self, consumer: ConsumerId, entries: list[int]) -> None:
        self._feed(RedeliveryRequested(consumer, [Position(LEDGER, each) for each in entries]))
        self._feed(PermitsAdded(consumer, 1))

    def publish(self, pieces: list[Piece]) -> None:
        self.pieces += pieces
        self.confirmed = len(self.pieces)
        self._feed(EntriesAvailable())

    def read(self) -> bool:
        """Answers the read that is under way; False when there is none."""
        read, self._read = self._read, None
        if read is None:
            return False
        self._feed(self._answer(read))
        for consumer, client in list(self.clients.items()):
            owed, client.permits_owed = client.permits_owed, 0
            if owed:
                self._feed(PermitsAdded(consumer, owed))
        return True

    def read_all(self) -> None:
        for _ in range(READS_MAX):
            if not self.read():
                return
        raise AssertionError("it reads again and again, and gives nothing away")

    def _answer(self, read: Read) -> Event:
        unacknowledged = (each for each in range(self.confirmed) if each not in self.acknowledged)
        first = next(unacknowledged, self.confirmed) if read.position is None else read.position.entry_id
        if read.picks is not None:
            ((_, picks),) = read.picks
            return EntriesPicked(read.read_id, [self._run(read.read_id, each, each + 1) for each in picks[:RUN_ENTRIES]])
        last = min(self.confirmed, first + min(RUN_ENTRIES, read.entries_max))
        return self._run(read.read_id, first, last) if first < last else NothingToRead(read.read_id)

    def _run(self, read_id: int, first: int, last: int) -> EntriesRead:
        buffer, offsets = bytearray(), array("I", [0])
        for piece in self.pieces[first:last]:
            buffer += bytes(36) + section(piece)
            offsets.append(len(buffer))
        run = EntryRun(LEDGER, first, buffer, offsets)
        hashes = array("I", map(key_hash, self.pieces[first:last]))
        return EntriesRead(read_id, run, scan(run), Position(-1, -1), BitMap(self.acknowledged), {}, hashes)

    def _feed(self, event: Event) -> None:
        for effect in self.dispatcher.handle(event, 0):
            if isinstance(effect, Read):
                self._read = effect
            elif isinstance(effect, Deliver):
                for index in effect.indexes:
                    entry_id = effect.run.first_entry_id + index
                    self.clients[effect.consumer].take(entry_id, self.pieces[entry_id])
        self.dispatcher.check_invariants()


def interleaved(chance: random.Random, messages: int) -> list[Piece]:
    """Pieces as several producers publish them: chunks of one message in their order, those of others between them."""
    counts = chance.choices((1, 1, 2, 5), k=messages)
    waiting = [[(uuid, index, count) for index in range(count)] for count in counts for uuid in (f"{chance.random()}",)]
    pieces = []
    while waiting:
        message = chance.choice(waiting[:3])
        pieces.append(message.pop(0))
        if not message:
            waiting.remove(message)
    return pieces


def drain(group: Group, consumer: ConsumerId) -> list[Piece]:
    """Acknowledges all that comes to the only one left."""
    client = group.clients[consumer]
    group.read_all()
    done = []
    while client.whole:
        entries = client.whole.pop(0)
        done.append(group.pieces[entries[-1]])
        group.acknowledge(consumer, entries)
        group.read_all()
    return done


@pytest.mark.parametrize("of_kind", [shared_dispatcher, key_shared_dispatcher])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_message_in_chunks_comes_whole_to_one_of_several_consumers_who_come_and_go_and_refuse(
    seed: int, of_kind: OfKind
) -> None:
    chance = random.Random(seed)
    group = Group(interleaved(chance, 10), of_kind)
    expected, done = sorted(piece for piece in group.pieces if piece[1] + 1 == piece[2]), []
    for _ in range(80):
        members = list(group.clients)
        doing = chance.random()
        if len(members) < 2 or (doing < 0.08 and len(members) < 5):
            group.join(chance.choice((1, 3, 100)))
        elif doing < 0.15:
            group.leave(chance.choice(members))
        elif doing < 0.2:
            more = interleaved(chance, 3)
            expected += [piece for piece in more if piece[1] + 1 == piece[2]]
            group.publish(more)
        elif doing < 0.6:
            group.read()
        else:
            consumer = chance.choice(members)
            if whole := group.clients[consumer].whole:
                entries = whole.pop(chance.randrange(len(whole)))
                if chance.random() < 0.3:
                    group.refuse(consumer, entries)
                else:
                    done.append(group.pieces[entries[-1]])
                    group.acknowledge(consumer, entries)
        assert not any(client.useless for client in group.clients.values())
    last = group.join(1000)
    for consumer in list(group.clients):
        if consumer != last:
            group.leave(consumer)
    done += drain(group, last)
    assert not group.clients[last].useless
    assert sorted(done) == sorted(expected)


def test_a_chunk_waits_for_who_has_the_ones_before_it_while_others_go_on_and_nothing_is_read_in_vain() -> None:
    group = Group([("a", 0, 3), ("one", 0, 1), ("a", 1, 3), ("two", 0, 1)])
    first, second = group.join(1), group.join(10)
    group.read()
    group.read_all()
    assert [len(client.whole) for client in group.clients.values()] == [0, 2]
    assert not group.clients[second].useless
    group.publish([("a", 2, 3), ("three", 0, 1)])
    group.read_all()
    assert [len(client.whole) for client in group.clients.values()] == [1, 3]
    assert group.clients[first].whole == [[0, 2, 4]]


def test_f22_chunks_whose_first_one_is_acknowledged_hold_nobody_up() -> None:
    """F22 (apache/pulsar#26395): the rest of the message comes, and so does what is behind it."""
    group = Group([("a", 0, 3), ("a", 1, 3), ("a", 2, 3), ("one", 0, 1), ("b", 0, 2), ("b", 1, 2)])
    group.acknowledged = BitMap([0])
    members = [group.join(10), group.join(10)]
    group.read_all()
    useless = [group.clients[each].useless for each in members]
    assert sorted(useless, key=len) == [[], [("a", 1, 3), ("a", 2, 3)]], "who gets one of them gets the others too"
    assert sorted(entries for each in members for entries in group.clients[each].whole) == [[3], [4, 5]]


def test_a_key_stays_with_who_has_begun_a_message_of_it_and_moves_when_that_is_whole_and_acknowledged() -> None:
    names = [f"{number}" for number in range(20)]
    group = Group([(name, 0, 3) for name in names], key_shared_dispatcher)
    first = group.join(100)
    group.read_all()
    second = group.join(100)
    group.publish([(name, index, 3) for index in (1, 2) for name in names])
    group.publish([(name, 0, 1) for name in names])
    group.read_all()
    one, other = group.clients[first], group.clients[second]
    assert (len(one.whole) >= len(names), other.whole, one.useless, other.useless) == (True, [], [], [])
    for entries in list(one.whole):
        group.acknowledge(first, entries)
        group.read_all()
    assert other.whole, "keys of the second one"
    assert sorted(map(len, one.whole + other.whole)) == [1] * len(names) + [3] * len(names)
    drain(group, second)
    assert not group.dispatcher._begun  # type: ignore[attr-defined]  # what it still knows is seen nowhere else


def test_a_message_that_is_given_up_keeps_no_key() -> None:
    names = [f"{number}" for number in range(20)]
    group = Group([(name, 0, 3) for name in names], key_shared_dispatcher)
    first = group.join(100)
    group.read_all()
    second = group.join(100)
    group.acknowledge(first, list(range(len(names))))  # as clients do with what they waited for too long
    group.publish([(name, 0, 1) for name in names])
    group.read_all()
    assert sorted(len(group.clients[each].whole) > 0 for each in (first, second)) == [True, True]
    assert not group.dispatcher._begun  # type: ignore[attr-defined]  # as above


def test_nothing_is_kept_of_messages_that_are_acknowledged() -> None:
    group = Group(interleaved(random.Random(1), 40))
    consumer = group.join(1000)
    drain(group, consumer)
    assert group.acknowledged == BitMap(range(len(group.pieces)))
    assert not group.dispatcher._chunked  # type: ignore[attr-defined]  # what it still knows is seen nowhere else
