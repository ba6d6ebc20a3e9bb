"""QuorumTracker: which entries of a ledger are confirmed, and which bookies must be replaced. Pure; owns the counting, sends
nothing.

An append becomes one or more pieces, each with the bookies that must store it. A piece is stored when the ack quorum has it,
and confirmed when it and every piece before it are stored: completing out of order would acknowledge an entry that recovery,
which stops at the first gap, may throw away. Where every bookie has every entry (ensemble size = write quorum) the piece is the
whole run; where entries are striped, each entry is a piece.

Bookies are known by their seats: a number that is used once. A replacement at the same index has a new seat, so that a late
answer of the bookie before it counts for nothing. From the moment a seat is to be replaced until the new ensemble is stored in
the metadata nothing is confirmed; then the acks of all replaced seats are taken back from all pieces, and only then are pieces
confirmed again (BookKeeper issues 1591, 3005, 4097: an entry acknowledged on bookies that the metadata does not name is lost).
A failure that breaks the quorum where no bookie can take the seat, or a refusal that no other bookie can heal (fenced, wrong
key), ends the tracker.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from wire.bookie.codes import BookieCode
from wire.record import record

FATAL_CODES = frozenset({BookieCode.EFENCED, BookieCode.EUA})


@dataclass(frozen=True, slots=True)
class Quorum:
    """Spread of a ledger over bookies. Entry e is on the bookies (e + i) mod ensemble size, i < write quorum."""

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
        """Number of bookies of a write set that may fail without breaking the ack quorum."""
        return self.write_quorum - self.ack_quorum


@record(frozen=True, slots=True)
class Send:
    """Give these entries to the bookies in these seats, and report each answer under `piece`."""

    piece: int
    first_entry_id: int
    count: int
    seats: Sequence[int]


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed ensemble: the new seat at each replaced index, and the pieces to send to these seats."""

    seats: Mapping[int, int]
    sends: Sequence[Send]


class Verdict(Enum):
    """Consequence of a failure."""

    BORNE = 1
    """Nothing is to be done."""
    CHANGE = 2
    """The seats in `leaving` are to be replaced."""
    ENDED = 3
    """`failure` says why."""


@dataclass(slots=True)
class _Piece:
    first_entry_id: int
    last_entry_id: int
    acked: int = 0
    """Bit i: the bookie in seat i has it. Only seats that are taken now."""
    failed: int = 0


class QuorumTracker:
    """The pending appends of one writer. `last_confirmed` only grows.

    The first seats are the indexes in the ensemble. With `delays_change` (Apache's delayEnsembleChange) a bookie is
    replaced only when its failure breaks a quorum or it is read-only, without it at each failure.
    """

    def __init__(self, quorum: Quorum, last_confirmed: int = -1, *, delays_change: bool = False) -> None:
        self.last_confirmed = last_confirmed
        self.failure: BookieCode | None = None
        self._quorum, self._delays_change = quorum, delays_change
        self._seats = tuple(range(quorum.ensemble_size))
        """Seats by index in the ensemble."""
        self._next_seat = quorum.ensemble_size
        self._leaving: dict[int, BookieCode] = {}
        self._kept: dict[int, None] = {}
        """Failed seats without a replacement: their failures mean nothing until a quorum is broken, or `on_patience_ended`."""
        self._pieces: dict[int, _Piece] = {}
        self._head = 0
        self._next = 0

    @property
    def pending_count(self) -> int:
        """Pieces that are not confirmed."""
        return self._next - self._head

    @property
    def leaving(self) -> Sequence[int]:
        """Seats that are to be replaced; nothing is confirmed while there are any."""
        return list(self._leaving)

    @property
    def is_at_rest(self) -> bool:
        """No piece is pending, no bookie is to be replaced, and the tracker has not ended."""
        return not (self._pieces or self._leaving) and self.failure is None

    @property
    def takes_more(self) -> bool:
        """Whether an append now can be confirmed without a change of the ensemble."""
        return not self._leaving and self.failure is None

    @property
    def seats(self) -> Sequence[int]:
        """Seats by index in the ensemble."""
        return self._seats

    def index_of(self, seat: int) -> int | None:
        """Index in the ensemble; None for a seat that was replaced."""
        return self._seats.index(seat) if seat in self._seats else None

    def on_append(self, first_entry_id: int, count: int) -> Sequence[Send]:
        """Entries in the order of their ids, each once."""
        if not self._quorum.is_striped:
            return (self._add_piece(first_entry_id, count, self._seats),)
        ids = range(first_entry_id, first_entry_id + count)
        return [self._add_piece(entry_id, 1, self._write_set(entry_id)) for entry_id in ids]

    def on_counted(self, last_confirmed: int) -> None:
        """Entries up to here were appended and confirmed without the tracker, which is at rest."""
        assert not self._pieces
        assert last_confirmed >= self.last_confirmed
        self.last_confirmed = last_confirmed

    def on_append_counted(self, first_entry_id: int, count: int, acked: int) -> int:
        """An append that these seats, a bit each, have stored already; its piece. The first one is not confirmed by them."""
        assert not self._quorum.is_striped
        assert self._pieces or acked.bit_count() < self._quorum.ack_quorum
        piece = self._next
        self._next = piece + 1
        self._pieces[piece] = _Piece(first_entry_id, first_entry_id + count - 1, acked)
        return piece

    def on_stored(self, piece: int, seat: int) -> bool:
        """A bookie has a piece; whether `last_confirmed` moved."""
        pending = self._pieces.get(piece)
        if pending is None or seat not in self._seats or self.failure is not None:
            return False
        pending.acked |= 1 << seat
        return piece == self._head and self._confirm()

    def on_failed(self, piece: int, seat: int, code: BookieCode) -> Verdict:
        """A bookie refused or lost a piece."""
        if self.failure is not None or seat not in self._seats:
            return Verdict.BORNE
        if code in FATAL_CODES:
            self.failure = code
            return Verdict.ENDED
        pending = self._pieces.get(piece)
        failed = 1 << seat if pending is None else pending.failed | 1 << seat
        if pending is not None:
            pending.failed = failed
        is_broken = pending is not None and self._is_broken(pending)
        is_patient = seat in self._kept or (self._delays_change and code != BookieCode.EREADONLY)
        if seat in self._leaving or (is_patient and not is_broken):
            return Verdict.BORNE
        self._leaving[seat] = code
        self._leaving |= {other: code for other in self._seats if failed >> other & 1 and other not in self._leaving}
        return Verdict.CHANGE

    def on_changed(self, replaced: Collection[int], kept: Collection[int] = ()) -> Changed:
        """The metadata has other bookies at the indexes of the `replaced` seats. The `kept` seats have no replacement, see
        `on_kept`."""
        indexes = sorted(map(self._seats.index, replaced))
        taken_back = sum(1 << seat for seat in replaced)
        for pending in self._pieces.values():
            pending.acked &= ~taken_back
            pending.failed &= ~taken_back
        new = {index: self._next_seat + step for step, index in enumerate(indexes)}
        self._next_seat += len(new)
        self._seats = tuple(new.get(index, seat) for index, seat in enumerate(self._seats))
        sends = [send for piece in range(self._head, self._next) for send in self._sends_again(piece, new)]
        for seat in replaced:
            self._leaving.pop(seat, None)
            self._kept.pop(seat, None)
        self.on_kept(kept)
        return Changed(new, sends)

    def on_kept(self, seats: Iterable[int]) -> Verdict:
        """There is no bookie for these seats: they are kept as long as every piece can still be stored. May confirm, or end."""
        kept = {seat: code for seat in seats if (code := self._leaving.pop(seat, None)) is not None}
        self._kept |= dict.fromkeys(kept)
        if self.failure is None and kept and any(self._is_broken(piece) for piece in self._pieces.values()):
            self.failure = next(iter(kept.values()))
            return Verdict.ENDED
        self._confirm()
        return Verdict.BORNE

    def on_patience_ended(self) -> None:
        """A bookie may be there by now that can take the kept seats: the next failure asks for a change again."""
        self._kept.clear()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert sorted(self._pieces) == list(range(self._head, self._next))
        ends = [self._pieces[piece].last_entry_id for piece in range(self._head, self._next)]
        assert ends == sorted(set(ends))
        assert not ends or ends[0] > self.last_confirmed
        assert len(set(self._seats)) == self._quorum.ensemble_size, "a seat is at two indexes"
        assert set(self._kept) <= set(self._seats)
        taken = sum(1 << seat for seat in self._seats)
        assert all((piece.acked | piece.failed) & ~taken == 0 for piece in self._pieces.values())
        if self._head < self._next and self.failure is None and not self._leaving:
            assert self._pieces[self._head].acked.bit_count() < self._quorum.ack_quorum

    def _write_set(self, entry_id: int) -> Sequence[int]:
        return [self._seats[index] for index in self._quorum.write_set(entry_id)]

    def _add_piece(self, first_entry_id: int, count: int, seats: Sequence[int]) -> Send:
        piece = self._next
        self._next = piece + 1
        self._pieces[piece] = _Piece(first_entry_id, first_entry_id + count - 1)
        return Send(piece, first_entry_id, count, seats)

    def _sends_again(self, piece: int, new: Mapping[int, int]) -> Iterable[Send]:
        pending = self._pieces[piece]
        first = pending.first_entry_id
        seats = [new[index] for index in self._quorum.write_set(first) if index in new]
        if seats:
            yield Send(piece, first, pending.last_entry_id + 1 - first, seats)

    def _is_broken(self, piece: _Piece) -> bool:
        return piece.failed.bit_count() > self._quorum.failures_max

    def _confirm(self) -> bool:
        if self._leaving or self.failure is not None:
            return False
        moved = False
        while (head := self._pieces.get(self._head)) is not None and head.acked.bit_count() >= self._quorum.ack_quorum:
            del self._pieces[self._head]
            self._head += 1
            self.last_confirmed = head.last_entry_id
            moved = True
        return moved
