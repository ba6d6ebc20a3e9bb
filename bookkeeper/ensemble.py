"""QuorumTracker: which entries of a ledger are confirmed. Pure; owns the counting, sends nothing.

An append becomes one or more pieces, each with the bookies that must store it. A piece is stored when the ack quorum has it,
and confirmed when it and every piece before it are stored: completing out of order would acknowledge an entry that recovery,
which stops at the first gap, may throw away. Where every bookie has every entry (ensemble size = write quorum) the piece is the
whole run; where entries are striped, each entry is a piece.
A failure that breaks the quorum, or a refusal that no other bookie can heal (fenced, wrong key), ends the tracker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wire.bookie_codes import BookieCode

FATAL_CODES = frozenset({BookieCode.EFENCED, BookieCode.EUA})


@dataclass(frozen=True, slots=True)
class Quorum:
    """How a ledger is spread. Entry e is on the bookies (e + i) mod ensemble size, i < write quorum."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int

    def __post_init__(self) -> None:
        if not self.ensemble_size >= self.write_quorum >= self.ack_quorum >= 1:
            raise ValueError(f"{self}: each must be at least the next, and the last at least 1")

    @property
    def is_striped(self) -> bool:
        return self.ensemble_size > self.write_quorum

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """Indexes in the ensemble of the bookies that get the entry, the first to be asked first."""
        return tuple((entry_id + step) % self.ensemble_size for step in range(self.write_quorum))

    @property
    def failures_max(self) -> int:
        """So many bookies of a write set may fail without breaking the ack quorum."""
        return self.write_quorum - self.ack_quorum


@dataclass(frozen=True, slots=True)
class Send:
    """Give these entries to these bookies (indexes in the ensemble), and report each answer under `piece`."""

    piece: int
    first_entry_id: int
    count: int
    bookies: Sequence[int]


@dataclass(slots=True)
class _Piece:
    last_entry_id: int
    acked: int = 0
    """Bit i: the bookie at index i has it."""
    failed: int = 0


class QuorumTracker:
    """The pending appends of one writer. `last_confirmed` only grows."""

    def __init__(self, quorum: Quorum, last_confirmed: int = -1) -> None:
        self.last_confirmed = last_confirmed
        self.failure: BookieCode | None = None
        self._quorum = quorum
        self._everybody = tuple(range(quorum.ensemble_size))
        self._pieces: dict[int, _Piece] = {}
        self._head = 0
        self._next = 0

    @property
    def pending_count(self) -> int:
        """Pieces that are not confirmed."""
        return self._next - self._head

    def on_append(self, first_entry_id: int, count: int) -> Sequence[Send]:
        """Entries in the order of their ids, each once."""
        if not self._quorum.is_striped:
            return (self._add_piece(first_entry_id, count, self._everybody),)
        ids = range(first_entry_id, first_entry_id + count)
        return [self._add_piece(entry_id, 1, self._quorum.write_set(entry_id)) for entry_id in ids]

    def on_stored(self, piece: int, bookie: int) -> bool:
        """A bookie has a piece; whether `last_confirmed` moved."""
        pending = self._pieces.get(piece)
        if pending is None or self.failure is not None:
            return False
        pending.acked |= 1 << bookie
        return piece == self._head and self._confirm()

    def on_failed(self, piece: int, bookie: int, code: BookieCode) -> bool:
        """A bookie refused or lost a piece; whether that ended the tracker: then `failure` says why."""
        pending = self._pieces.get(piece)
        if self.failure is not None:
            return False
        if code in FATAL_CODES:
            self.failure = code
        elif pending is not None:
            pending.failed |= 1 << bookie
            if pending.failed.bit_count() > self._quorum.failures_max:
                self.failure = code
        return self.failure is not None

    def check_invariants(self) -> None:
        """For tests."""
        assert sorted(self._pieces) == list(range(self._head, self._next))
        ends = [self._pieces[piece].last_entry_id for piece in range(self._head, self._next)]
        assert ends == sorted(set(ends))
        assert not ends or ends[0] > self.last_confirmed
        if self._head < self._next and self.failure is None:
            assert self._pieces[self._head].acked.bit_count() < self._quorum.ack_quorum

    def _add_piece(self, first_entry_id: int, count: int, bookies: Sequence[int]) -> Send:
        piece = self._next
        self._next = piece + 1
        self._pieces[piece] = _Piece(first_entry_id + count - 1)
        return Send(piece, first_entry_id, count, bookies)

    def _confirm(self) -> bool:
        moved = False
        while (head := self._pieces.get(self._head)) is not None and head.acked.bit_count() >= self._quorum.ack_quorum:
            del self._pieces[self._head]
            self._head += 1
            self.last_confirmed = head.last_entry_id
            moved = True
        return moved
