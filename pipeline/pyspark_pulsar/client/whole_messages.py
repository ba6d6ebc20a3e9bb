"""Rows in which messages that are in chunks are whole: put together as they come, and what came before a split is looked for.

A message belongs to the split, and to the batch of a stream, that has its last chunk. So offsets stay places of entries, every
message is read once whatever the splits are, and a split whose first entries continue a message reads what is before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy

from ..decode.chunks import MESSAGE_BYTES_MAX, Chunk, Missing, OpenMessages, Section, chunk_in, settled
from ..decode.octets import PADDING_BYTES, Places
from ..decode.rows import A_CHUNK, Rows, rows_of
from ..decode.sections import Block
from ..positions import Place

HELD_BYTES_MAX = 64 << 20
"""Bytes of chunks that wait for the rest of their message, where several messages are open. Forgotten chunks are read again."""

EntriesBefore = Callable[[Place], Iterator[Iterator[Rows]]]
"""Windows of the entries before a place: the nearest first, each in order."""


def whole_messages(found: Iterable[Rows], before: EntriesBefore, verifies_checksums: bool) -> Iterator[Rows]:
    """Rows without chunks pass as they are. A last chunk whose others are not there is a row with an error."""
    open_messages = OpenMessages(HELD_BYTES_MAX)
    for rows in found:
        if not rows.has_chunks:
            yield rows  # perhaps none
            continue
        whole = _put_together(rows, open_messages, before, verifies_checksums)
        if whole.count:
            yield whole


def _put_together(rows: Rows, open_messages: OpenMessages, before: EntriesBefore, verifies: bool) -> Rows:
    block = rows.block
    made: dict[int, bytes] = {}
    reasons: dict[int, str] = {}
    dropped: set[int] = set()
    for entry in numpy.flatnonzero(rows.chunk_counts > 1).tolist():
        chunk = _chunk_at(block, entry) if rows.errors[entry] == A_CHUNK else None
        if chunk is None:
            continue  # the row has an error already
        outcome = open_messages.take(chunk)
        if isinstance(outcome, Missing):
            outcome = _looked_for(chunk, Place(int(block.ledger_ids[entry]), int(block.entry_ids[entry])), outcome, before)
        match outcome:
            case Section(data):
                made[entry] = data
            case Missing(reason):
                reasons[entry] = reason
            case None:
                dropped.add(entry)
    kept = numpy.array([each for each in range(block.count) if each not in dropped], numpy.int64)
    at = {int(entry): row for row, entry in enumerate(kept.tolist())}
    return rows_of(_with(block, made, kept), verifies, {at[entry]: reason for entry, reason in reasons.items()})


def _with(block: Block, made: Mapping[int, bytes], kept: Places) -> Block:
    """The entries that are kept; those that were made lie behind the block's own bytes."""
    starts, ends = block.starts.copy(), block.ends.copy()
    parts, at = [block.data[:-PADDING_BYTES]], len(block.data) - PADDING_BYTES
    for entry, section in made.items():
        parts.append(numpy.frombuffer(section, numpy.uint8))
        starts[entry], ends[entry] = at, at + len(section)
        at += len(section)
    data = numpy.concatenate([*parts, numpy.zeros(PADDING_BYTES, numpy.uint8)]) if made else block.data
    return Block(data, starts[kept], ends[kept], block.ledger_ids[kept], block.entry_ids[kept])


def _chunk_at(block: Block, entry: int) -> Chunk | None:
    return chunk_in(block.data[block.starts[entry] : block.ends[entry]].data)


def _looked_for(last: Chunk, place: Place, missing: Missing, before: EntriesBefore) -> Section | Missing | None:
    """With what is before the last chunk, from the nearest beginning of its message on. None: it was whole before."""
    if last.about.total_chunk_msg_size > MESSAGE_BYTES_MAX:
        return missing
    history: list[Chunk] = []
    for window in before(place):
        found, is_other = _of_message(window, last)
        history = [*found, *history]
        if is_other or any(each.is_first for each in found) or _bytes_of(history) > MESSAGE_BYTES_MAX:
            break
    return settled([*history, last])


def _of_message(window: Iterator[Rows], last: Chunk) -> tuple[list[Chunk], bool]:
    """Chunks of its message, from the last beginning on; and whether its producer sent something else before them.

    A producer sends its messages one after the other: what is before another one is of no use.
    """
    found: list[Chunk] = []
    is_other = False
    for rows in window:
        for entry in range(rows.block.count):
            if rows.errors[entry] not in ("", A_CHUNK):
                continue
            chunk = _chunk_at(rows.block, entry)
            if chunk is None or chunk.about.uuid != last.about.uuid:
                is_other |= not found and _is_by(rows, entry, last.about.producer_name)
                continue
            found = [] if chunk.is_first else found
            found.append(chunk.kept())
    return found, is_other


def _is_by(rows: Rows, entry: int, producer: str) -> bool:
    start, end = rows.producers.starts[entry], rows.producers.ends[entry]
    return bool(start >= 0) and rows.block.data[start:end].tobytes() == producer.encode()


def _bytes_of(chunks: list[Chunk]) -> int:
    return sum(len(each.payload) for each in chunks)
