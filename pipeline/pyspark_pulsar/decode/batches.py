"""Where the messages of many batches are: `u32 size | SingleMessageMetadata | payload`, one behind the other.

Where the second one begins is known from the first alone. So positions are guessed, as if the messages that follow had the
first one's length, all guesses are read at once, and they count up to the first that does not fit: every one before it was
where its predecessor ends, so this is exact. Messages of changing lengths are taken one of each batch at a time.
"""

from dataclasses import dataclass

import numpy

from .octets import Flags, Octets, Places, sizes_at
from .protobuf_columns import Fields, scan

_PAYLOAD_SIZE = 3
_SIZE_ALONE = Fields(numbers=(_PAYLOAD_SIZE,))
_MESSAGE_BYTES_MIN = 6
"""The size of the metadata, and in it the size of the payload: a batch that says it has more than fit is broken."""
_WINDOW_MAX = 4096
_GUESSES_MAX = 1 << 17
"""Guesses in one round, whatever the window: what bounds its memory."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Batch by batch, in order. `is_broken` is of batches.

    Of a broken batch the messages before the damage are there, and the others have -1 everywhere.
    """

    metadata_starts: Places
    metadata_ends: Places
    payload_ends: Places
    batches: Places
    indexes: Places
    is_broken: Flags


@dataclass(slots=True)
class _Walk:
    """Batches that have more: where their next message is, its index, and how long the one before was."""

    batches: Places
    at: Places
    indexes: Places
    strides: Places


def messages_of(data: Octets, starts: Places, ends: Places, counts: Places) -> Messages:
    """The messages of the batches `data[start:end]`, which say that they have `counts` of them."""
    is_broken = (counts < 0) | (counts > (ends - starts) // _MESSAGE_BYTES_MIN)
    counts = numpy.where(is_broken, 0, counts)
    first_rows = numpy.concatenate((numpy.zeros(1, numpy.int64), numpy.cumsum(counts)))
    total = int(first_rows[-1])
    batches = numpy.repeat(numpy.arange(len(counts)), counts)
    indexes = numpy.arange(total) - first_rows[batches]
    absent = numpy.full(total, -1, numpy.int64)
    found = Messages(absent, absent.copy(), absent.copy(), batches, indexes, is_broken)
    some = numpy.flatnonzero(counts > 0)
    walk = _Walk(some, starts[some].copy(), numpy.zeros(len(some), numpy.int64), numpy.zeros(len(some), numpy.int64))
    window = 1
    while len(walk.batches):
        window = _round(data, ends, counts, first_rows, found, walk, window)
    return found


def _round(data: Octets, ends: Places, counts: Places, first_rows: Places, found: Messages, walk: _Walk, window: int) -> int:
    """Takes the messages that are certain from `window` guesses for each batch; how many to guess next."""
    window = max(1, min(window, _GUESSES_MAX // len(walk.batches)))
    steps = numpy.arange(window)
    grid = walk.at[:, None] + walk.strides[:, None] * steps
    limits = ends[walk.batches][:, None]
    is_asked = (steps < (counts[walk.batches] - walk.indexes)[:, None]) & (grid + 4 <= limits)
    metadata_ends, payload_ends = _read(data, grid, numpy.broadcast_to(limits, grid.shape), is_asked)
    fits = is_asked & (payload_ends == grid + walk.strides[:, None])
    leading = numpy.logical_and.accumulate(fits, axis=1).sum(axis=1)
    # the first one that differs is certain too: it begins where the one before it ends
    last = numpy.minimum(leading, numpy.minimum(window, counts[walk.batches] - walk.indexes) - 1)
    every = numpy.arange(len(last))
    is_sound = payload_ends[every, last] >= 0
    taken = (steps <= last[:, None]) & (payload_ends >= 0)
    rows = (first_rows[walk.batches] + walk.indexes)[:, None] + steps
    chosen = rows[taken]
    found.metadata_starts[chosen], found.metadata_ends[chosen] = (grid + 4)[taken], metadata_ends[taken]
    found.payload_ends[chosen] = payload_ends[taken]
    _advance(walk, counts, found, grid[every, last], payload_ends[every, last], last + 1, is_sound)
    accepted = float(last.mean()) + 1 if len(last) else 0.0
    return min(window * 2, _WINDOW_MAX) if accepted * 2 > window else max(1, window // 2)


def _read(data: Octets, grid: Places, limits: Places, is_asked: Flags) -> tuple[Places, Places]:
    """Ends of metadata and payload of the message at each place of the grid; -1 where there is none."""
    at, limit = grid[is_asked], limits[is_asked]
    metadata_starts = at + 4
    metadata_ends = metadata_starts + sizes_at(data, at)
    has_metadata = metadata_ends <= limit
    sizes = scan(data, metadata_starts, numpy.where(has_metadata, metadata_ends, metadata_starts), _SIZE_ALONE)
    size = sizes.numbers[_PAYLOAD_SIZE]
    payload_ends = metadata_ends + numpy.minimum(size.values, numpy.uint64(len(data) + 1)).astype(numpy.int64)
    is_sound = has_metadata & ~sizes.is_broken & size.present & (payload_ends <= limit)
    both = numpy.full((2, *grid.shape), -1, numpy.int64)
    both[0][is_asked] = numpy.where(is_sound, metadata_ends, -1)
    both[1][is_asked] = numpy.where(is_sound, payload_ends, -1)
    return both[0], both[1]


def _advance(
    walk: _Walk, counts: Places, found: Messages, last_at: Places, last_ends: Places, taken: Places, is_sound: Flags
) -> None:
    found.is_broken[walk.batches[~is_sound]] = True
    indexes = walk.indexes + taken
    goes_on = is_sound & (indexes < counts[walk.batches])
    walk.batches, walk.indexes = walk.batches[goes_on], indexes[goes_on]
    walk.at, walk.strides = last_ends[goes_on], (last_ends - last_at)[goes_on]
