"""Runs of messages beside the known ids of their producer: whole where they are new, cut where they are not. Pure.

The cost is that of a run as long as its ids ascend and are new. Only a run that has something known in it, chunks or markers
is looked at entry by entry.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress, groupby

from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.int64 import signed
from wire.kernels.metadata import keyed_batches, scan
from wire.kernels.sequences import highest_if_ascending, last_sequence_ids
from wire.payloads import message_metadata, split_section
from wire.run import FLAG_CHUNK, FLAG_MARKER, Buffer, EntryBatch, EntryRun, SendRun

from .batches_by_key import has_gaps
from .deduplication import NOTHING, Chunk, Deduplication, Verdict


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive messages of a run with one fate. A fate other than storing leaves out the bytes. `last` and `chunk`: the
    producer's persisted id once the piece is stored.
    """

    run: SendRun
    verdict: Verdict
    last: int
    chunk: Chunk | None


@dataclass(frozen=True, slots=True)
class Message:
    """One entry: its ids from `first` to `last`. `last` is NOTHING where no message is whole by it: a chunk, a marker."""

    first: int
    last: int
    chunk: Chunk | None = None
    is_marker: bool = False


def judged(known: Deduplication, name: str, run: SendRun, now_ms: int) -> list[Piece]:
    """The pieces in order, at least one; those to be stored count as appends under way."""
    lasts = _last_ids(run)
    last = NOTHING if run.flags & (FLAG_CHUNK | FLAG_MARKER) else highest_if_ascending(run.sequence_ids, lasts)
    if last != NOTHING and known.push_run(name, run.sequence_ids[0], last, now_ms):
        return [Piece(run, Verdict.STORE, last, None)]
    messages = list(_messages(run, lasts))
    verdicts = [_verdict(known, name, message, now_ms) for message in messages]
    return list(_pieces(known, name, run, messages, verdicts))


def noted(known: Deduplication, name: str, run: SendRun, now_ms: int) -> Piece:
    """The whole run, to be stored in any case."""
    messages = list(_messages(run, _last_ids(run)))
    last, chunk = _reach(messages)
    known.note(name, last, now_ms)
    return Piece(run, Verdict.STORE, last, chunk)


def message_of(metadata: MessageMetadata, section: Buffer) -> Message:
    """Message of a stored entry."""
    first = signed(metadata.sequence_id)
    highest = signed(metadata.highest_sequence_id)
    if not highest and not has_gaps(section, metadata):
        highest = first + max(metadata.num_messages_in_batch, 1) - 1
    chunk = _chunk_of(metadata)
    if metadata.HasField("marker_type"):
        return Message(first, NOTHING, is_marker=True)
    return Message(first, max(first, highest) if chunk is None or chunk.is_last else NOTHING, chunk)


def metadata_of(section: Buffer) -> MessageMetadata | None:
    """None for unreadable metadata: its message has no known producer."""
    try:
        return message_metadata(split_section(section))
    except MalformedPayload:
        return None


def _chunk_of(metadata: MessageMetadata) -> Chunk | None:
    if metadata.num_chunks_from_msg <= 1:
        return None
    message = (metadata.uuid, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size)
    return Chunk(message, metadata.chunk_id)


def _last_ids(run: SendRun) -> "array[int]":
    """Last sequence id of each entry. Batches of the C++ client and its kin do not give theirs: it follows from their number of
    messages, but for batches by key, whose first id is all that is certain (Apache counts that one always)."""
    entries = run.entries
    if entries.message_count == entries.count or all(run.highest_sequence_ids):
        return run.highest_sequence_ids
    stored = EntryRun(0, 0, entries.buffer, entries.offsets, entries.header_bytes)
    scanned = scan(stored)
    lasts = last_sequence_ids(run.sequence_ids, run.highest_sequence_ids, scanned.message_counts)
    for index in compress(range(entries.count), keyed_batches(stored)):
        if not run.highest_sequence_ids[index] and has_gaps(_section(run, index)):
            lasts[index] = run.sequence_ids[index]
    return lasts


def _section(run: SendRun, index: int) -> memoryview:
    """Bytes that were sent as this entry."""
    entries = run.entries
    return memoryview(entries.buffer)[entries.offsets[index] + entries.header_bytes : entries.offsets[index + 1]]


def _messages(run: SendRun, lasts: "array[int]") -> Iterator[Message]:
    """Messages by their commands, which receipts answer; chunks and markers by their metadata too."""
    for index, (word, highest) in enumerate(zip(run.sequence_ids, lasts, strict=True)):
        first = signed(word)
        last = max(first, signed(highest)) if highest else first
        if run.flags & (FLAG_CHUNK | FLAG_MARKER):
            section = _section(run, index)
            metadata = metadata_of(section)
            if metadata is not None:
                found = message_of(metadata, section)
                yield Message(first, NOTHING if found.last == NOTHING else last, found.chunk, found.is_marker)
                continue
        yield Message(first, last)


def _verdict(known: Deduplication, name: str, message: Message, now_ms: int) -> Verdict:
    """A marker is the broker's own, and never a repeat."""
    if message.is_marker:
        known.touch(name, now_ms)
        return Verdict.STORE
    last = message.first if message.last == NOTHING else message.last
    return known.judge(name, message.first, last, message.chunk, now_ms)


def _pieces(known: Deduplication, name: str, run: SendRun, messages: list[Message], verdicts: list[Verdict]) -> Iterator[Piece]:
    entries = run.entries
    scanned = scan(EntryRun(0, 0, entries.buffer, entries.offsets, entries.header_bytes))
    for verdict, group in groupby(range(len(verdicts)), key=verdicts.__getitem__):
        indexes = list(group)
        start, end = indexes[0], indexes[-1] + 1
        last, chunk = _reach(messages[start:end])
        count = sum(scanned.message_counts[start:end])
        yield Piece(_part(run, start, end, count, has_bytes=verdict is Verdict.STORE), verdict, last, chunk)
        if verdict is Verdict.STORE:
            known.begin_append(name)


def _reach(messages: list[Message]) -> tuple[int, Chunk | None]:
    last = max(message.last for message in messages)
    return last, next((message.chunk for message in reversed(messages) if message.chunk is not None), None)


def _part(run: SendRun, start: int, end: int, message_count: int, *, has_bytes: bool) -> SendRun:
    """A run of some of its messages, with bytes of its own or none."""
    entries = run.entries
    if has_bytes and end - start == entries.count:
        return run
    base = entries.offsets[start]
    offsets = array("I", [offset - base for offset in entries.offsets[start : end + 1]])
    buffer = entries.buffer[base : entries.offsets[end]] if has_bytes else bytearray()
    batch = EntryBatch(buffer, offsets, entries.header_bytes, message_count)
    ids, highest = run.sequence_ids[start:end], run.highest_sequence_ids[start:end]
    return replace(run, entries=batch, sequence_ids=ids, highest_sequence_ids=highest)
