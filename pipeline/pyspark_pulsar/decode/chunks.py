"""Messages that their producers cut into several entries (chunks), put together. Pure.

As Apache's consumers do it (ConsumerImpl.processMessageChunk): chunk 0 begins its message, again where it comes again; the next
one continues it; one that was there is a repeat. The message is where its last chunk is, with that chunk's metadata. A message
whose last chunk was never written was never published, and is none.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from wire.generated.pulsar_api_pb2 import MessageMetadata

MESSAGE_BYTES_MAX = 256 << 20
"""Bytes of a message in chunks: a longer one is an error, not a task that runs out of memory."""
_MAGIC_BROKER_METADATA, _MAGIC_CHECKSUM = b"\x0e\x02", b"\x0e\x01"
_OF_CHUNKS = ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One entry. `head`: what its broker put before it; `payload` a part of the message's, compressed as a whole."""

    about: MessageMetadata
    head: bytes
    payload: bytes | memoryview

    @property
    def is_first(self) -> bool:
        return self.about.chunk_id == 0

    @property
    def is_last(self) -> bool:
        return self.about.chunk_id == self.about.num_chunks_from_msg - 1

    def kept(self) -> "Chunk":
        """The chunk with bytes of its own: a view would hold the whole block."""
        return Chunk(self.about, self.head, bytes(self.payload))


def chunk_in(section: memoryview) -> Chunk | None:
    """Chunk in an entry whose metadata were read before (`sections`): None for a whole message, or no message."""
    at = 6 + int.from_bytes(section[2:6]) if section[:2] == _MAGIC_BROKER_METADATA else 0
    head = bytes(section[:at])
    at += 6 if section[at : at + 2] == _MAGIC_CHECKSUM else 0
    end = at + 4 + int.from_bytes(section[at : at + 4])
    try:
        about = MessageMetadata.FromString(bytes(section[at + 4 : end]))
    except DecodeError:
        return None
    return Chunk(about, head, section[end:]) if about.num_chunks_from_msg > 1 else None


@dataclass(frozen=True, slots=True)
class Section:
    """A message that is whole, as one entry of it would be."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """A last chunk whose predecessors did not come before it; `reason` says which."""

    reason: str


class OpenMessages:
    """Messages of which some chunks came. Above `bytes_max` the least recently continued are forgotten, but for the last."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self.held_bytes = bytes_max, 0
        self._chunks: OrderedDict[str, list[Chunk]] = OrderedDict()

    def take(self, chunk: Chunk) -> Section | Missing | None:
        """Message that the topic's next chunk completes; None where the message goes on, or the chunk is a repeat."""
        uuid = chunk.about.uuid
        if chunk.about.total_chunk_msg_size > MESSAGE_BYTES_MAX:
            self._forget(uuid)
            return Missing(_too_long(chunk)) if chunk.is_last else None
        if chunk.is_first:
            self._forget(uuid)
            self._chunks[uuid] = []
        came = self._chunks.get(uuid)
        if came is None:
            return Missing(_missing(chunk, ())) if chunk.is_last else None
        if chunk.about.chunk_id < len(came):
            return None
        if chunk.about.chunk_id > len(came):
            count = len(came)
            self._forget(uuid)
            return Missing(_missing(chunk, range(count))) if chunk.is_last else None
        if not chunk.is_last:
            self._keep(uuid, chunk.kept())
            return None
        self._forget(uuid)
        return whole([*came, chunk])

    def _keep(self, uuid: str, chunk: Chunk) -> None:
        self._chunks[uuid].append(chunk)
        self._chunks.move_to_end(uuid)
        self.held_bytes += len(chunk.payload)
        while self.held_bytes > self._bytes_max and len(self._chunks) > 1:
            self._forget(next(iter(self._chunks)))

    def _forget(self, uuid: str) -> None:
        self.held_bytes -= sum(len(each.payload) for each in self._chunks.pop(uuid, ()))


def whole(chunks: Sequence[Chunk]) -> Section | Missing:
    """All of a message, in order."""
    last = chunks[-1]
    length = sum(len(each.payload) for each in chunks)
    # each chunk of an encrypted message has a seal of its own
    tells_length = last.about.HasField("total_chunk_msg_size") and not last.about.encryption_keys
    if tells_length and length != last.about.total_chunk_msg_size:
        return Missing(
            f"its {len(chunks)} chunks have {length} bytes, and it says that it has {last.about.total_chunk_msg_size}"
        )
    about = MessageMetadata()
    about.CopyFrom(last.about)
    for name in _OF_CHUNKS:
        about.ClearField(name)
    encoded = about.SerializeToString()
    return Section(b"".join((last.head, len(encoded).to_bytes(4), encoded, *(each.payload for each in chunks))))


def settled(history: Iterable[Chunk]) -> Section | Missing | None:
    """Outcome of the last chunk of `history`, which has all chunks of a message in order. None: a repeat of a whole message."""
    open_messages = OpenMessages(MESSAGE_BYTES_MAX)
    was_whole = False
    seen: set[int] = set()
    outcome: Section | Missing | None = None
    for each in history:
        outcome = open_messages.take(each)
        if each.is_first:
            was_whole, seen = False, set()
        seen.add(each.about.chunk_id)
        if isinstance(outcome, Missing) and was_whole:
            outcome = None
        elif isinstance(outcome, Missing) and len(seen) < each.about.num_chunks_from_msg:
            outcome = Missing(_missing(each, seen))
        was_whole = was_whole or isinstance(outcome, Section)
    return outcome


def _missing(last: Chunk, seen: Container[int]) -> str:
    count = last.about.num_chunks_from_msg
    first = next((number for number in range(count) if number not in seen), 0)
    return f"it is the last of {count} chunks of a message, and chunk {first} (of 0 to {count - 1}) is not before it"


def _too_long(last: Chunk) -> str:
    return f"a message in chunks of {last.about.total_chunk_msg_size} bytes together; {MESSAGE_BYTES_MAX} are read"
