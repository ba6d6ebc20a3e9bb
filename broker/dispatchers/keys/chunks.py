"""Messages in chunks on a Shared subscription: all chunks of one go to the same consumer, in their order (PIP-37).

Owns the consumer of each begun message, until its chunks are acknowledged, and the chunks that wait for room at that consumer.
Apache's SharedConsumerAssignor gives a chunk without its first one to no consumer, so that it stays in the backlog
(apache/pulsar#26395); here the consumer whose turn it is gets the chunk, and drops it when it expires. Decides nothing about
messages in one piece.
"""

from collections.abc import Callable
from typing import NamedTuple

from pyroaring import BitMap

from wire.errors import MalformedPayload
from wire.payloads import message_metadata, split_section
from wire.position import Position
from wire.run import EntryRun

from ..entry_sets import EntrySet, union
from ..permits import Receiver


class Chunk(NamedTuple):
    """A chunk: its message, and its place in it."""

    uuid: str
    number: int
    is_last: bool


def chunk_of(run: EntryRun, entry_id: int) -> Chunk | None:
    """None: the message is in one piece, or does not name its message."""
    try:
        metadata = message_metadata(split_section(run.payload(entry_id)))
    except MalformedPayload:
        return None
    if metadata.num_chunks_from_msg < 2 or not metadata.uuid or not metadata.HasField("chunk_id"):
        return None
    return Chunk(metadata.uuid, metadata.chunk_id, metadata.chunk_id + 1 >= metadata.num_chunks_from_msg)


class _Message:
    """Chunks of one message that were read and are not acknowledged."""

    __slots__ = ("owner", "positions")

    def __init__(self) -> None:
        self.owner: Receiver | None = None
        self.positions = EntrySet()


class ChunkedMessages:
    """Chunked messages of one subscription. Bounded by the unacknowledged entries and those that wait to be delivered."""

    def __init__(self) -> None:
        self._messages: dict[str, _Message] = {}
        self._uuids: dict[Position, str] = {}
        self._known = EntrySet()
        """The positions in `_uuids`."""
        self._waiting: dict[Receiver, EntrySet] = {}

    def __bool__(self) -> bool:
        return bool(self._uuids)

    def read(self, chunk: Chunk, position: Position) -> Receiver | None:
        """Notes a chunk that was read; returns its receiver. None: the next in turn, also for a first chunk delivered again."""
        is_again = position in self._uuids
        message = self._note(chunk, position)
        return message.owner if chunk.number or not is_again else None

    def _note(self, chunk: Chunk, position: Position) -> _Message:
        message = self._messages.get(chunk.uuid)
        if message is None:
            message = self._messages[chunk.uuid] = _Message()
        entry_ids = BitMap((position.entry_id,))
        message.positions.add(position.ledger_id, entry_ids)
        self._uuids[position] = chunk.uuid
        self._known.add(position.ledger_id, entry_ids)
        return message

    def is_behind(self, chunk: Chunk, position: Position, put_off: EntrySet) -> bool:
        """Whether an earlier chunk of the message has still to be delivered: it waits here, or is put off elsewhere. Asked for
        each chunk of a message, which may have very many: whole bitmaps are compared."""
        for ledger_id, own in self._messages[chunk.uuid].positions.ledgers():
            end = position.entry_id if ledger_id == position.ledger_id else own.max() + 1
            if ledger_id <= position.ledger_id and any(
                _is_before(own & each.in_ledger(ledger_id), end) for each in (put_off, *self._waiting.values())
            ):
                return True
        return False

    def begun(self, chunk: Chunk, receiver: Receiver) -> None:
        """The chunk was given to this receiver, and so is the rest of its message."""
        self._messages[chunk.uuid].owner = receiver

    def wait(self, receiver: Receiver, position: Position) -> None:
        """Until this one has room."""
        self._waiting.setdefault(receiver, EntrySet()).add(position.ledger_id, BitMap((position.entry_id,)))

    @property
    def waiting(self) -> EntrySet:
        """All chunks that wait for a consumer."""
        return union(self._waiting.values())

    def take_ready(self, room: Callable[[Receiver], int]) -> EntrySet:
        """Takes the entries that have waited for a receiver which has room now."""
        ready = [receiver for receiver in self._waiting if room(receiver)]
        return union([self._waiting.pop(receiver) for receiver in ready])

    def left(self, receiver: Receiver) -> EntrySet:
        """Releases the receiver's messages; returns the entries that have waited for it."""
        for message in self._messages.values():
            if message.owner is receiver:
                message.owner = None
        return self._waiting.pop(receiver, None) or EntrySet()

    def drop(self, ledger_id: int, entry_ids: BitMap) -> None:
        """These are acknowledged or gone."""
        for entry_id in self._known.remove(ledger_id, entry_ids):
            position = Position(ledger_id, entry_id)
            uuid = self._uuids.pop(position)
            positions = self._messages[uuid].positions
            positions.remove(ledger_id, BitMap((entry_id,)))
            if not positions:
                del self._messages[uuid]
        for receiver, each in list(self._waiting.items()):
            each.remove(ledger_id, entry_ids)
            if not each:
                del self._waiting[receiver]

    def drop_between(self, start: Position, end: Position) -> EntrySet:
        """Those in [start, end) are gone; which of them had waited."""
        waited = self.waiting.between(start, end)
        for ledger_id, entry_ids in self._known.between(start, end).ledgers():
            self.drop(ledger_id, entry_ids)
        return waited

    def clear(self) -> None:
        self._messages.clear()
        self._uuids.clear()
        self._known.clear()
        self._waiting.clear()

    def check_invariants(self) -> None:
        self._known.check_invariants()
        assert len(self._known) == len(self._uuids) == sum(len(each.positions) for each in self._messages.values())
        for receiver, each in self._waiting.items():
            assert each, f"{receiver.name}: nothing waits, and is kept"
            for ledger_id, entry_ids in each.ledgers():
                assert entry_ids <= self._known.in_ledger(ledger_id), "what waits is not known"


def _is_before(entry_ids: BitMap, end: int) -> bool:
    return bool(entry_ids) and entry_ids.min() < end
