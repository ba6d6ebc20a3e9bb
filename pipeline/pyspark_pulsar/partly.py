"""Batches acknowledged in part, and which of their messages are left: a million of them in a few arrays. Pure.

Brokers tell them as words of 64 bits by position, a page at a time; the first message is the lowest bit of the first word.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy

from .decode.octets import Flags, Places, Words
from .positions import Place

_WORD = (1 << 64) - 1


def _none() -> Places:
    return numpy.zeros(0, numpy.int64)


@dataclass(frozen=True, slots=True)
class Parts:
    """Ascending by place. The words of batch i are `words[bounds[i]:bounds[i + 1]]`; false where there are no batches."""

    ledger_ids: Places = field(default_factory=_none)
    entry_ids: Places = field(default_factory=_none)
    bounds: Places = field(default_factory=lambda: numpy.zeros(1, numpy.int64))
    words: Words = field(default_factory=lambda: numpy.zeros(0, numpy.uint64))

    def __len__(self) -> int:
        return len(self.entry_ids)

    def between(self, first: Place, last: Place) -> "Parts":
        """Copies: what one task has to know holds on to nothing of the others'."""
        begin, end = self._at(first), self._at(Place(last.ledger_id, last.entry_id + 1))
        words = self.words[self.bounds[begin] : self.bounds[end]].copy()
        bounds = self.bounds[begin : end + 1] - self.bounds[begin]
        return Parts(self.ledger_ids[begin:end].copy(), self.entry_ids[begin:end].copy(), bounds, words)

    def _at(self, place: Place) -> int:
        """Number of batches before the place."""
        begin, end = numpy.searchsorted(self.ledger_ids, [place.ledger_id, place.ledger_id + 1])
        return int(begin + numpy.searchsorted(self.entry_ids[begin:end], place.entry_id))

    def of_entries(self, ledger_ids: Places, entry_ids: Places) -> Places:
        """Index of each entry's batch here, -1 where it has none."""
        found = numpy.full(len(entry_ids), -1, numpy.int64)
        for ledger_id in numpy.unique(ledger_ids).tolist():
            begin, end = numpy.searchsorted(self.ledger_ids, [ledger_id, ledger_id + 1])
            if begin < end:
                these = numpy.flatnonzero(ledger_ids == ledger_id)
                at = begin + numpy.searchsorted(self.entry_ids[begin:end], entry_ids[these])
                is_here = (at < end) & (self.entry_ids[numpy.minimum(at, end - 1)] == entry_ids[these])
                found[these] = numpy.where(is_here, at, -1)
        return found

    def are_left(self, batches: Places, messages: Places) -> Flags:
        """Whether each message is left, by its batch here and its number in that."""
        at = self.bounds[batches] + (messages >> 6)
        is_told = at < self.bounds[batches + 1]
        words = self.words[numpy.where(is_told, at, 0)] if len(self.words) else numpy.zeros(len(at), numpy.uint64)
        are_left: Flags = is_told & ((words >> (messages & 63).astype(numpy.uint64) & numpy.uint64(1)) != 0)
        return are_left


def parts_in(pages: Iterable[Mapping[str, Sequence[int]]]) -> Parts:
    """Parts in pages of brokers: the later page wins for a batch that two pages have."""
    found = [_of_page(page) for page in pages if page]
    if not found:
        return Parts()
    ledger_ids, entry_ids, sizes, words = (numpy.concatenate(each) for each in zip(*found, strict=True))
    order = numpy.lexsort((entry_ids, ledger_ids))
    of_next = order[1:]
    is_same = (ledger_ids[order[:-1]] == ledger_ids[of_next]) & (entry_ids[order[:-1]] == entry_ids[of_next])
    order = order[numpy.append(~is_same, True)]
    starts, sizes = (numpy.cumsum(sizes) - sizes)[order], sizes[order]
    bounds = numpy.concatenate([[0], numpy.cumsum(sizes)])
    every = numpy.arange(bounds[-1]) - numpy.repeat(bounds[:-1], sizes) + numpy.repeat(starts, sizes)
    return Parts(ledger_ids[order], entry_ids[order], bounds, words[every])


def _of_page(page: Mapping[str, Sequence[int]]) -> tuple[Places, Places, Places, Words]:
    places = numpy.array(":".join(page).split(":")).astype(numpy.int64).reshape(-1, 2)
    words = numpy.array([word & _WORD for word in itertools.chain.from_iterable(page.values())], numpy.uint64)
    sizes = numpy.array([len(each) for each in page.values()], numpy.int64)
    return places[:, 0].copy(), places[:, 1].copy(), sizes, words
