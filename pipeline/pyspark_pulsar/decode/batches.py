"""Positions of the messages of many batches: `u32 size | SingleMessageMetadata | payload`, one behind the other.

The start of a message is known from its predecessor alone. Positions are therefore guessed and all guesses read at once; they
hold up to the first that does not fit, since every one before it is where its predecessor ends: the result is exact. The first
guess is that all messages have the first one's length, the second every place that looks like a beginning (`marked_messages`);
where neither helps, one message of each batch is taken at a time.
"""

from dataclasses import dataclass

import numpy

from .marked_messages import chains, marks
from .octets import Flags, Octets, Places, sizes_at
from .protobuf_columns import Fields, scan

_PAYLOAD_SIZE = 3
_SIZE_ALONE = Fields(numbers=(_PAYLOAD_SIZE,))
_MESSAGE_BYTES_MIN = 6
"""The size of the metadata, and in it the size of the payload: a batch that says it has more than fit is broken."""
_WINDOW_MAX = 4096
_GROWTH = 32
"""Factor of the window's growth after a round in which every guess was right."""
_GUESSES_MAX = 1 << 17
"""Guesses in one round, whatever the window: what bounds its memory."""
_MARKED_MIN = 16
"""Messages that batches have left, on average, from which on it is worth to look through all of their bytes."""
_BREAKS_MAX = 4
"""Marks of which one may be false; with more false marks, following the true ones takes too long."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages batch by batch, in order. `is_broken` has a flag for each batch.

    A broken batch has its messages before the damage; the others have -1 everywhere.
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
    window, has_looked = 1, False
    while len(walk.batches):
        was, window = window, _round(data, ends, counts, first_rows, found, walk, window)
        left = int((counts[walk.batches] - walk.indexes).sum())
        if window < was and not has_looked and left > _MARKED_MIN * len(walk.batches):
            has_looked = True
            _take_marked(data, ends, counts, first_rows, found, walk)
    return found


def _round(data: Octets, ends: Places, counts: Places, first_rows: Places, found: Messages, walk: _Walk, window: int) -> int:
    """Takes the messages that are certain from `window` guesses for each batch; how many to guess next."""
    left = counts[walk.batches] - walk.indexes
    window = max(1, min(window, _GUESSES_MAX // len(walk.batches), int(left.max())))
    steps = numpy.arange(window)
    grid = walk.at[:, None] + walk.strides[:, None] * steps
    limits = ends[walk.batches][:, None]
    is_asked = (steps < left[:, None]) & (grid + 4 <= limits)
    metadata_ends, payload_ends = (numpy.full(grid.shape, -1, numpy.int64) for _ in range(2))
    limits = numpy.broadcast_to(limits, grid.shape)
    metadata_ends[is_asked], payload_ends[is_asked] = _read(data, grid[is_asked], limits[is_asked])
    fits = is_asked & (payload_ends == grid + walk.strides[:, None])
    leading = numpy.logical_and.accumulate(fits, axis=1).sum(axis=1)
    # the first one that differs is certain too: it begins where the one before it ends
    last = numpy.minimum(leading, numpy.minimum(window, left) - 1)
    every = numpy.arange(len(last))
    is_sound = payload_ends[every, last] >= 0
    taken = (steps <= last[:, None]) & (payload_ends >= 0)
    rows = (first_rows[walk.batches] + walk.indexes)[:, None] + steps
    chosen = rows[taken]
    found.metadata_starts[chosen], found.metadata_ends[chosen] = (grid + 4)[taken], metadata_ends[taken]
    found.payload_ends[chosen] = payload_ends[taken]
    _advance(walk, counts, found, grid[every, last], payload_ends[every, last], last + 1, is_sound)
    accepted = float(last.mean()) + 1 if len(last) else 0.0
    if accepted * 2 > window:
        return min(window * (_GROWTH if accepted == window else 2), _WINDOW_MAX)
    return max(1, window // 2)


def _read(data: Octets, at: Places, limits: Places) -> tuple[Places, Places]:
    """Ends of metadata and payload of the message at each place; -1 where there is none up to its limit."""
    metadata_starts = at + 4
    metadata_ends = metadata_starts + sizes_at(data, at)
    has_metadata = metadata_ends <= limits
    sizes = scan(data, metadata_starts, numpy.where(has_metadata, metadata_ends, metadata_starts), _SIZE_ALONE)
    size = sizes.numbers[_PAYLOAD_SIZE]
    payload_ends = metadata_ends + numpy.minimum(size.values, numpy.uint64(len(data) + 1)).astype(numpy.int64)
    is_sound = has_metadata & ~sizes.is_broken & size.present & (payload_ends <= limits)
    return numpy.where(is_sound, metadata_ends, -1), numpy.where(is_sound, payload_ends, -1)


def _take_marked(data: Octets, ends: Places, counts: Places, first_rows: Places, found: Messages, walk: _Walk) -> None:
    """Takes what can be had by marks; the batches that have more walk on behind that."""
    order = numpy.argsort(walk.at)
    firsts, limits = walk.at[order], ends[walk.batches[order]]
    places = marks(data, int(firsts[0]), int(limits.max()))
    batches = numpy.searchsorted(firsts, places, "right") - 1
    inside = places + 4 <= limits[batches]
    places, batches = places[inside], batches[inside]
    metadata_ends, payload_ends = _read(data, places, limits[batches])
    linked = chains(places, payload_ends)
    if len(linked.breaks) * _BREAKS_MAX > len(places) + _BREAKS_MAX * len(firsts):
        return
    for row, batch in enumerate(walk.batches.tolist()):
        chosen, walk.at[row] = linked.follow(int(walk.at[row]), int(counts[batch] - walk.indexes[row]))
        into = slice(first_rows[batch] + walk.indexes[row], first_rows[batch] + walk.indexes[row] + len(chosen))
        found.metadata_starts[into], found.metadata_ends[into] = places[chosen] + 4, metadata_ends[chosen]
        found.payload_ends[into] = payload_ends[chosen]
        walk.indexes[row] += len(chosen)
    goes_on = walk.indexes < counts[walk.batches]
    walk.batches, walk.at = walk.batches[goes_on], walk.at[goes_on]
    walk.indexes, walk.strides = walk.indexes[goes_on], walk.strides[goes_on]


def _advance(
    walk: _Walk, counts: Places, found: Messages, last_at: Places, last_ends: Places, taken: Places, is_sound: Flags
) -> None:
    found.is_broken[walk.batches[~is_sound]] = True
    indexes = walk.indexes + taken
    goes_on = is_sound & (indexes < counts[walk.batches])
    walk.batches, walk.indexes = walk.batches[goes_on], indexes[goes_on]
    walk.at, walk.strides = last_ends[goes_on], (last_ends - last_at)[goes_on]
