"""PendingAcks: acknowledgements of undecided transactions on one subscription. Pure. A message is acknowledged by one
transaction at most: the second one gets a conflict, as does an acknowledgement of an acknowledged message. Parts of batches are
bits: 1 = acknowledged by it. Apache: PendingAckHandleImpl.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyroaring import BitMap

from wire.position import Position
from wire.transactions import TxnAction, TxnId

from ..statistics.transaction_facts import AckPlace

_WORD = (1 << 64) - 1
_ENDED_KEPT_MAX = 10_000
BATCH_MESSAGES_MAX = 1 << 14
"""Limit of a batch acknowledged in part, where the ack set is shorter: an id of 20 bytes is kept as up to 2 KB."""


class Place(Protocol):
    """Part of a cursor that says which messages are acknowledged."""

    @property
    def mark_delete(self) -> Position: ...
    def is_acknowledged(self, position: Position) -> bool: ...
    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None: ...


@dataclass(frozen=True, slots=True)
class Acked:
    """An entry, or part of one. `ack_set`: words, bit 1 = not acknowledged; empty: the whole entry."""

    position: Position
    ack_set: tuple[int, ...] = ()
    batch_size: int = 0

    @property
    def bits(self) -> int | None:
        """Acknowledged messages of the batch; None: the whole entry."""
        return None if not any(self.ack_set) else _full(self.size) & ~number_of(self.ack_set)

    @property
    def size(self) -> int:
        return self.batch_size or 64 * len(self.ack_set)


@dataclass(slots=True)
class _Part:
    """Pending messages of a batch."""

    bits: int
    size: int


@dataclass(slots=True)
class TransactionAcks:
    """Acknowledgements of one transaction."""

    individual: list[Acked] = field(default_factory=list)
    cumulative: Acked | None = None
    bits: dict[Position, int | None] = field(default_factory=dict)
    """Messages of `individual`, by entry."""

    def entries(self) -> dict[int, BitMap]:
        """Entries of `individual`, by ledger."""
        found: dict[int, BitMap] = {}
        for position in self.bits:
            found.setdefault(position.ledger_id, BitMap()).add(position.entry_id)
        return found


class PendingAcks:
    """Pending acknowledgements of one subscription."""

    def __init__(self) -> None:
        self.low_water_marks: dict[int, int] = {}
        self._open: OrderedDict[TxnId, TransactionAcks] = OrderedDict()
        self._whole: dict[int, BitMap] = {}
        """Entries that are pending as a whole, by ledger."""
        self._parts: dict[Position, _Part] = {}
        self._cumulative: TxnId | None = None
        self._ended: OrderedDict[TxnId, TxnAction] = OrderedDict()
        """Lately, and how; acknowledgements of theirs that come now are too late."""

    def takes(self, txn_id: TxnId) -> bool:
        """Whether it may still acknowledge something."""
        return txn_id not in self._ended and txn_id.least > self.low_water_marks.get(txn_id.most, -1)

    def ended_by(self, txn_id: TxnId) -> TxnAction | None:
        """End of the transaction; None: it has not ended, or that is not known any more."""
        return self._ended.get(txn_id)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_any(self) -> bool:
        return bool(self._open)

    @property
    def has_parts(self) -> bool:
        return bool(self._parts)

    def of(self, txn_id: TxnId) -> TransactionAcks | None:
        return self._open.get(txn_id)

    # ---- messages that dispatchers must not deliver

    def whole_in(self, ledger_id: int) -> BitMap:
        """Do not change it."""
        return self._whole.get(ledger_id) or BitMap()

    def unacknowledged(self, position: Position, words: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The ack set of a batch: the cursor's, without pending messages; all words are 0 if no message is left."""
        part = self._parts.get(position)
        if part is None:
            return words
        rest = (_full(part.size) if words is None else number_of(words)) & ~part.bits
        return words_of(rest, -(-part.size // 64))

    def place_of(self, position: Position, batch_index: int | None) -> AckPlace:
        """State of a message. Batch without an index: whether any of it is pending. All of a pending entry is pending."""
        part = self._parts.get(position)
        if part is not None and batch_index is not None:
            if batch_index >= part.size:
                return AckPlace.NOT_IN_BATCH
            return AckPlace.PENDING if part.bits >> batch_index & 1 else AckPlace.NOT_PENDING
        is_whole = position.entry_id in self.whole_in(position.ledger_id)
        return AckPlace.PENDING if part is not None or is_whole else AckPlace.NOT_PENDING

    def parts_in(self, ledger_id: int) -> Sequence[Position]:
        return [position for position in self._parts if position.ledger_id == ledger_id]

    # ---- acknowledgements

    def conflict(self, txn_id: TxnId, acked: Sequence[Acked], place: Place) -> str | None:
        """Why the transaction cannot acknowledge these, one by one; None when it can."""
        seen: dict[Position, int | None] = {}
        for each in acked:
            bits = each.bits
            if place.is_acknowledged(each.position) or _has(place.unacknowledged_batch_indexes(each.position), bits):
                return f"Transaction:{txn_id} try to ack message:{_name(each.position)} already acked before."
            if self._is_pending(each.position, bits) or (each.position in seen and _overlap(seen[each.position], bits)):
                return f"Transaction:{txn_id} try to ack message:{_name(each.position)} in pending ack status."
            seen[each.position] = _both(seen.get(each.position, 0), bits)
        return None

    def _is_pending(self, position: Position, bits: int | None) -> bool:
        if position.entry_id in self.whole_in(position.ledger_id):
            return True
        part = self._parts.get(position)
        return part is not None and _overlap(part.bits, bits)

    def cumulative_conflict(self, txn_id: TxnId, acked: Acked, place: Place) -> str | None:
        """Same as `conflict`: one transaction at a time may acknowledge cumulatively, each time further on."""
        if acked.position <= place.mark_delete:
            return (
                f"Transaction:{txn_id} try to cumulative ack position: {_name(acked.position)} within range of cursor's "
                f"markDeletePosition: {_name(place.mark_delete)}"
            )
        if self._cumulative is None:
            return None
        current = self._open[self._cumulative].cumulative
        assert current is not None
        if self._cumulative != txn_id or _reach(acked) <= _reach(current):
            return (
                f"Transaction:{txn_id} try to cumulative batch ack position: {_name(acked.position)} within range of current "
                f"currentPosition: {_name(current.position)}"
            )
        return None

    def add(self, txn_id: TxnId, acked: Sequence[Acked]) -> None:
        """Adds acknowledgements that have no conflict."""
        acks = self._open.setdefault(txn_id, TransactionAcks())
        for each in acked:
            acks.individual.append(each)
            bits, position = each.bits, each.position
            acks.bits[position] = _both(acks.bits.get(position, 0), bits)
            if bits is None:
                self._whole.setdefault(position.ledger_id, BitMap()).add(position.entry_id)
            elif position in self._parts:
                self._parts[position].bits |= bits
            else:
                self._parts[position] = _Part(bits, each.size)

    def add_cumulative(self, txn_id: TxnId, acked: Acked) -> None:
        """Adds a cumulative acknowledgement that has no conflict."""
        self._open.setdefault(txn_id, TransactionAcks()).cumulative = acked
        self._cumulative = txn_id

    def take(self, txn_id: TxnId, action: TxnAction) -> TransactionAcks | None:
        """Ends a transaction: none of its acknowledgements is pending any more. Returns its acknowledgements."""
        self._ended.setdefault(txn_id, action)
        if len(self._ended) > _ENDED_KEPT_MAX:
            self._ended.popitem(last=False)
        acks = self._open.pop(txn_id, None)
        if acks is None:
            return None
        if self._cumulative == txn_id:
            self._cumulative = None
        for position, bits in acks.bits.items():
            if bits is None:
                self._remove_whole(position)
            else:
                self._remove_part(position, bits)
        return acks

    def _remove_whole(self, position: Position) -> None:
        entries = self._whole[position.ledger_id]
        entries.discard(position.entry_id)
        if not entries:
            del self._whole[position.ledger_id]

    def _remove_part(self, position: Position, bits: int) -> None:
        part = self._parts[position]
        part.bits &= ~bits
        if not part.bits:
            del self._parts[position]

    def low_water_mark(self, coordinator: int, least: int) -> list[TxnId]:
        """Open transactions that the coordinator does not know any more. Marks do not fall."""
        mark = self.low_water_marks.get(coordinator, -1)
        if least > mark:
            mark = self.low_water_marks[coordinator] = least
        return [txn_id for txn_id in self._open if txn_id.most == coordinator and txn_id.least <= mark]

    def check_invariants(self) -> None:
        """AssertionError when the sums are not those of the transactions."""
        again = PendingAcks()
        for txn_id, acks in self._open.items():
            assert acks.individual or acks.cumulative, "a transaction without an acknowledgement"
            again.add(txn_id, acks.individual)
        assert again._whole == self._whole
        assert {at: part.bits for at, part in again._parts.items()} == {at: part.bits for at, part in self._parts.items()}
        with_cumulative = [txn_id for txn_id, acks in self._open.items() if acks.cumulative is not None]
        assert with_cumulative == ([] if self._cumulative is None else [self._cumulative])


def number_of(words: Sequence[int]) -> int:
    """An ack set as one number."""
    return int.from_bytes(b"".join([(word & _WORD).to_bytes(8, "little") for word in words]), "little")


def words_of(number: int, count: int) -> tuple[int, ...]:
    """An ack set of `count` words."""
    octets = (number & _full(64 * count)).to_bytes(8 * count, "little")
    return tuple([int.from_bytes(octets[at : at + 8], "little") for at in range(0, 8 * count, 8)])


def out_of_proportion(acked: Acked) -> str | None:
    """Reason why a part of a batch would take much more room than its id: a pending one has a bit for each message of the
    batch.
    """
    most = max(BATCH_MESSAGES_MAX, 64 * len(acked.ack_set))
    if not any(acked.ack_set) or acked.batch_size <= most:
        return None
    return f"part of a batch of {acked.batch_size} messages with {len(acked.ack_set)} words; {most} is the most"


def _full(size: int) -> int:
    return (1 << size) - 1


def _overlap(one: int | None, other: int | None) -> bool:
    """None: all."""
    if one is None:
        return other is None or other != 0
    return one != 0 if other is None else bool(one & other)


def _both(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one | other


def _has(unacknowledged: tuple[int, ...] | None, bits: int | None) -> bool:
    """Whether some of these messages of a batch are acknowledged. A whole entry may be acknowledged after parts of it."""
    return unacknowledged is not None and bits is not None and bool(bits & ~number_of(unacknowledged))


def _reach(acked: Acked) -> tuple[Position, float]:
    """Reach of a cumulative acknowledgement: part of a batch is less than the whole."""
    bits = acked.bits
    return acked.position, float("inf") if bits is None else bits.bit_length()


def _name(position: Position) -> str:
    return f"{position.ledger_id}:{position.entry_id}"
