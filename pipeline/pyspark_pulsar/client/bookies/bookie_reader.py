"""The entries of ranges of a ledger straight from bookies: the nearest that has them, the others where it fails.

Brokers keep back messages of open and aborted transactions. This reader therefore refuses a ledger that has
messages of transactions (`NeedsBroker`), and its caller reads on through the broker, from where this one was.
"""

import functools
import socket
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from types import ModuleType

import crc32c
import numpy

from ...decode.compiled import entries_kernel
from ...decode.octets import Flags, Places, sizes_at, words_at
from ...decode.rows import Rows, rows_in_parts
from ...decode.sections import Block
from ...ledger_places import DIGEST_BYTES, LedgerPlaces
from ...options import Access
from ...positions import LedgerRange
from ..connection import Lost
from .bookie_answers import Answers, TooMuch
from .bookie_connection import BookieConnection
from .bookies_inside import BookieInside
from .nearby_bookie import NearbyBookie
from .witness import Witness

_WINDOW_BYTES = 4 << 20
"""Bytes of entries that are asked for at a time, about: a task's memory is a few times this."""
_ANSWERS_BYTES_MAX = 4 * _WINDOW_BYTES
"""Bytes of a window's answers, exceeded where entries are larger than those before: smaller windows are then asked for."""
_WINDOW_ENTRIES_MAX = 4096
_STORED_HEADER_BYTES = 32
"""Ledger id, entry id, last add confirmed, length; the digest follows."""
_STORED_BYTES = _STORED_HEADER_BYTES + max(DIGEST_BYTES.values())


_Share = tuple[str, Places]
"""A bookie, and the entries of a window that it is asked for."""


class NeedsBroker(Exception):
    """Part of the ranges that only the broker can give; the text says why."""


class BookieReader:
    """Iterate once. `wanted`: in order, all of one ledger. `left` is what was not handed out yet, when NeedsBroker comes."""

    def __init__(
        self,
        places: LedgerPlaces,
        wanted: Sequence[LedgerRange],
        access: Access,
        verifies_checksums: bool,
        failed: dict[str, str] | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._places, self._wanted, self._access, self._verifies = places, wanted, access, verifies_checksums
        self._next_entry_id = wanted[0].first_entry_id
        self._entry_bytes = max(1, sum(each.size_bytes for each in wanted) // sum(each.count for each in wanted))
        self._connections: dict[str, NearbyBookie | BookieInside] = {}
        self._failed: dict[str, str] = {} if failed is None else failed
        """Bookies that are not asked again, and why; readers of one task share it."""
        self._witness = witness
        self._identities: dict[str, str] = {}
        """Identity of each bookie asked, as the witness knows it."""
        self._gave: dict[str, int] = {}
        """First entry, not handed out yet, of each bookie that the witness has not vouched for."""

    @property
    def left(self) -> list[LedgerRange]:
        return list(self._from(self._next_entry_id))

    def _from(self, entry_id: int) -> Iterator[LedgerRange]:
        """The ranges, or what of them is not before that entry."""
        for each in self._wanted[bisect_right(self._wanted, entry_id, key=lambda each: each.end_entry_id) :]:
            yield each.part(entry_id, each.end_entry_id) if each.first_entry_id < entry_id else each

    def __iter__(self) -> Iterator[Rows]:
        try:
            while self._next_entry_id < self._wanted[-1].end_entry_id:
                try:
                    yield from self._windows_from(self._next_entry_id)
                except TooMuch as error:
                    # requests under way end with their connections: otherwise their answers would have to be kept
                    self._close()
                    self._gave.clear()
                    self._entry_bytes = max(2 * self._entry_bytes, error.entry_bytes)
        finally:
            self._close()

    def _windows_from(self, first: int) -> Iterator[Rows]:
        """While one window is decoded, bookies send the next."""
        asked = self._ask(self._window(first))
        while asked:
            block = _joined([self._sound_block(bookie, entries) for bookie, entries in asked])
            held = int((block.ends - block.starts).sum())
            self._entry_bytes = max(self._entry_bytes // 4, held // block.count, 1)
            first = int(block.entry_ids[-1]) + 1
            asked = self._ask(self._window(first)) if first < self._wanted[-1].end_entry_id else []
            yield from self._taken(block)

    def _window(self, first: int) -> Places:
        """Entries of one range, or of many small ones: a request for each small range would cost more than its answer."""
        left = max(1, min(_WINDOW_ENTRIES_MAX, _WINDOW_BYTES // self._entry_bytes))
        parts = []
        for each in self._from(first):
            parts.append(numpy.arange(each.first_entry_id, min(each.first_entry_id + left, each.end_entry_id)))
            left -= len(parts[-1])
            if not left:
                break
        return numpy.concatenate(parts)

    def _close(self) -> None:
        for each in self._connections.values():
            each.close()
        self._connections.clear()

    def _ask(self, window: Places) -> list[_Share]:
        """A bookie that fails here fails again when its answers are wanted, and is replaced there."""
        shares = list(self._shares(window))
        for bookie, entries in shares:
            try:
                self._connection(bookie).ask(self._places.ledger_id, entries)
            except Lost as error:
                self._drop(bookie, str(error))
        return shares

    def _shares(self, window: Places) -> Iterator[_Share]:
        """Entries by bookie: each goes to the nearest replica that has not failed, where there is one."""
        chosen: dict[str, list[Places]] = {}
        for entries in _alike(self._places, window):
            replicas = self._places.replicas(int(entries[0]))
            bookie = nearest(tuple(each for each in replicas if each not in self._failed) or replicas)
            chosen.setdefault(bookie, []).append(entries)
        for bookie, parts in chosen.items():
            yield bookie, numpy.sort(numpy.concatenate(parts))

    def _taken(self, block: Block) -> Iterator[Rows]:
        for rows in rows_in_parts(block, self._verifies):
            if rows.has_transactions:
                raise NeedsBroker("it has messages of transactions")
            self._check_bookies(rows.block)
            self._next_entry_id = int(rows.block.entry_ids[-1]) + 1
            yield rows

    def _came_from(self, bookie: str, block: Block) -> Block:
        if self._witness is not None and not self._witness.knows(self._identity(bookie)):
            self._gave.setdefault(bookie, int(block.entry_ids[0]))
        return block

    def _identity(self, bookie: str) -> str:
        return self._identities.get(bookie, bookie)

    def _check_bookies(self, block: Block) -> None:
        """Checks that the bookies of a block are of the topic's cluster: others may have the same address and ledger id."""
        last = int(block.entry_ids[-1])
        for bookie, entry_id in [each for each in self._gave.items() if each[1] <= last]:  # the others' come in a later part
            del self._gave[bookie]
            row = int(numpy.searchsorted(block.entry_ids, entry_id))
            assert self._witness is not None
            section = block.data[block.starts[row] : block.ends[row]].tobytes()
            if not self._witness.vouches(self._identity(bookie), self._places.ledger_id, entry_id, section):
                reason = f"bookie {bookie} is not the one that the topic's ledgers name, or nobody can say so"
                self._drop(bookie, reason)
                raise NeedsBroker(reason)

    def _sound_block(self, bookie: str, entries: Places) -> Block:
        """Block from that bookie; entries that it lacks or has damaged come from the others, one at a time."""
        try:
            if bookie in self._failed:
                raise Lost(self._failed[bookie])
            expected = (self._entry_bytes + _STORED_BYTES) * len(entries)
            answers = self._connections[bookie].answers(entries, expected, _ANSWERS_BYTES_MAX)
        except Lost as error:
            self._drop(bookie, str(error))
            return _joined([self._from_others(int(entry), bookie) for entry in entries])
        block, is_sound = self._opened(answers)
        if bool(is_sound.all()):
            return self._came_from(bookie, block)
        kept = {int(block.entry_ids[row]): row for row in numpy.flatnonzero(is_sound).tolist()}
        parts = [
            self._came_from(bookie, _one(block, kept[entry])) if entry in kept else self._from_others(entry, bookie)
            for entry in entries.tolist()
        ]
        return _joined(parts)

    def _from_others(self, entry_id: int, failed: str) -> Block:
        reason = self._failed.get(failed, f"bookie {failed} does not have it sound")
        for bookie in self._places.replicas(entry_id):
            if bookie == failed or bookie in self._failed or bookie in self._places.inside:
                continue
            connection = None
            try:
                connection = BookieConnection(bookie, self._access.timeout_seconds)  # the kept one has answers under way
                connection.ask(self._places.ledger_id, numpy.array([entry_id]))
                block, is_sound = self._opened(
                    connection.answers(numpy.array([entry_id]), self._entry_bytes, _ANSWERS_BYTES_MAX)
                )
            except Lost as error:
                self._drop(bookie, str(error))
                reason = str(error)
                continue
            finally:
                if connection is not None:
                    connection.close()
            if bool(is_sound.all()):
                return self._came_from(bookie, block)
        raise NeedsBroker(f"entry {self._places.ledger_id}:{entry_id}: {reason}")

    def _opened(self, answers: Answers) -> tuple[Block, Flags]:
        """Entries without what bookies store before them, and which are there and sound."""
        if self._verifies and self._places.digest == "CRC32C" and entries_kernel is not None:
            return self._opened_by(entries_kernel, answers)
        digest_bytes = DIGEST_BYTES[self._places.digest]
        header = _STORED_HEADER_BYTES + digest_bytes
        ledger_ids = numpy.full(len(answers.starts), self._places.ledger_id, numpy.int64)
        is_sound = answers.is_there & (answers.ends - answers.starts >= header)
        if not bool(is_sound.any()):  # there may be fewer bytes than the first header has
            return Block(answers.data, answers.starts, answers.ends, ledger_ids, answers.entry_ids), is_sound
        starts = numpy.where(is_sound, answers.starts, 0)
        ids = [words_at(answers.data, starts + at).byteswap().view(numpy.int64) for at in (0, 8)]
        is_sound &= (ids[0] == self._places.ledger_id) & (ids[1] == answers.entry_ids)
        if self._verifies and digest_bytes:
            is_sound &= self._digests_fit(answers, starts, is_sound)
        return Block(answers.data, starts + header, answers.ends, ledger_ids, answers.entry_ids), is_sound

    def _opened_by(self, kernel: ModuleType, answers: Answers) -> tuple[Block, Flags]:
        """The same, and a look at the checksums inside."""
        marks = numpy.empty(len(answers.starts), numpy.uint8)
        starts, ends, entry_ids = (numpy.ascontiguousarray(each) for each in (answers.starts, answers.ends, answers.entry_ids))
        ledger_id = self._places.ledger_id
        fits = kernel.check_stored(answers.data.data, starts.data, ends.data, ledger_id, entry_ids.data, marks.data)
        is_sound = answers.is_there & (marks != 0)
        header = _STORED_HEADER_BYTES + DIGEST_BYTES["CRC32C"]
        ledger_ids = numpy.full(len(starts), ledger_id, numpy.int64)
        return Block(answers.data, starts + header, ends, ledger_ids, entry_ids, fits), is_sound

    def _digests_fit(self, answers: Answers, starts: Places, is_sound: Flags) -> Flags:
        """Whether each digest fits the 32 bytes before it and the bytes after it (DigestManager): one library call an entry."""
        compute, size = _DIGESTS[self._places.digest]
        view = answers.data.data
        at = _STORED_HEADER_BYTES
        spans = zip(starts.tolist(), answers.ends.tolist(), is_sound.tolist(), strict=True)
        found = [compute(view[a + at + size : b], compute(view[a : a + at])) if sound else 0 for a, b, sound in spans]
        stated = sizes_at(answers.data, starts + at + size - 4)
        fits: Flags = stated == numpy.array(found, numpy.int64)
        return fits

    def _connection(self, bookie: str) -> NearbyBookie | BookieInside:
        if bookie in self._failed:
            raise Lost(self._failed[bookie])
        if bookie not in self._connections:
            is_inside = bookie in self._places.inside
            found = BookieInside(bookie, self._access) if is_inside else NearbyBookie(bookie, self._access.timeout_seconds)
            self._connections[bookie], self._identities[bookie] = found, found.identity
        return self._connections[bookie]

    def _drop(self, bookie: str, reason: str) -> None:
        self._failed.setdefault(bookie, reason)
        connection = self._connections.pop(bookie, None)
        if connection is not None:
            connection.close()


_DIGESTS = {"CRC32C": (crc32c.crc32c, 4), "CRC32": (zlib.crc32, 8)}


def nearest(replicas: tuple[str, ...]) -> str:
    """One on this machine where there is one, else the first: entries take turns by themselves."""
    return next((each for each in replicas if each.rpartition(":")[0] in _own_names()), replicas[0])


@functools.cache
def _own_names() -> frozenset[str]:
    name = socket.gethostname()
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
    except OSError:
        addresses = set()
    return frozenset({"127.0.0.1", "localhost", name, socket.getfqdn(), *addresses})


def _alike(places: LedgerPlaces, window: Places) -> Iterator[Places]:
    """The entries that are on the same bookies in the same order."""
    firsts = numpy.array([each.first_entry_id for each in places.ensembles])
    ensembles = numpy.maximum(numpy.searchsorted(firsts, window, "right") - 1, 0)
    counts = numpy.array([len(each.bookies) for each in places.ensembles])
    kinds = ensembles * int(counts.max()) + window % counts[ensembles]
    for kind in numpy.unique(kinds):
        yield window[kinds == kind]


def _one(block: Block, row: int) -> Block:
    return block.chosen(numpy.array([row]))


def _joined(blocks: list[Block]) -> Block:
    """Blocks as one, with the entries in the order of the blocks."""
    if len(blocks) == 1:
        return blocks[0]
    shifts = numpy.cumsum([0, *(len(each.data) for each in blocks)])
    parts = [
        numpy.concatenate([each.starts + shift for each, shift in zip(blocks, shifts, strict=False)]),
        numpy.concatenate([each.ends + shift for each, shift in zip(blocks, shifts, strict=False)]),
        numpy.concatenate([each.ledger_ids for each in blocks]),
        numpy.concatenate([each.entry_ids for each in blocks]),
    ]
    order = numpy.argsort(parts[3], kind="stable")
    data = numpy.concatenate([each.data for each in blocks])
    is_checked = all(each.has_right_checksums for each in blocks)
    return Block(data, parts[0][order], parts[1][order], parts[2][order], parts[3][order], is_checked)
