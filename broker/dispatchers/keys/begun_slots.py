"""Slots of Key_Shared whose consumer has begun a message in chunks: they stay with it until it has all of that message. Owns
the messages under way, and their consumers. Should the slot move when a consumer comes or goes, the rest of the message would
wait for its first chunks to be acknowledged, which no client does before it has the rest. Apache's Key_Shared does not look at
chunks (apache/pulsar#23265: it warns). Decides nothing about messages in one piece.
"""

from typing import NamedTuple

from pyroaring import BitMap

from wire.position import Position

from ..contract import ConsumerId
from ..entry_sets import EntrySet
from .chunks import Chunk
from .selectors import Assignment


class _Begun(NamedTuple):
    slot: int
    consumer: ConsumerId
    first: Position


class BegunSlots:
    """Begun slots of one subscription. Bounded by the number of unacknowledged entries."""

    def __init__(self) -> None:
        self._begun: dict[str, _Begun] = {}
        """Begun messages by uuid."""
        self._uuids: dict[Position, str] = {}
        self._firsts = EntrySet()
        """The positions in `_uuids`."""
        self._kept: dict[int, ConsumerId] = {}
        """Slots that a consumer has only because of a begun message."""

    def __bool__(self) -> bool:
        return bool(self._begun)

    def delivered(self, chunk: Chunk, position: Position, slot: int, consumer: ConsumerId) -> None:
        """This consumer has it now; the last one ends the message."""
        known = self._begun.get(chunk.uuid)
        if chunk.is_last:
            self._forget(chunk.uuid)
        elif known is None or known.consumer != consumer:
            self._forget(chunk.uuid)
            self._begun[chunk.uuid] = _Begun(slot, consumer, position)
            self._uuids[position] = chunk.uuid
            self._firsts.add(position.ledger_id, BitMap((position.entry_id,)))

    def dropped(self, ledger_id: int, entry_ids: BitMap) -> None:
        """These are acknowledged or gone: a client that acknowledges the first chunk has given the message up."""
        for entry_id in self._firsts.in_ledger(ledger_id) & entry_ids:
            self._forget(self._uuids[Position(ledger_id, entry_id)])

    def left(self, consumer: ConsumerId) -> None:
        """Messages that the consumer had begun are begun anew by another consumer."""
        for uuid in [uuid for uuid, each in self._begun.items() if each.consumer == consumer]:
            self._forget(uuid)

    def clear(self) -> None:
        self._begun.clear()
        self._uuids.clear()
        self._firsts.clear()
        self._kept.clear()

    def kept_in(self, assignment: Assignment) -> Assignment:
        """With these slots where they are."""
        wanted = {each.slot: each.consumer for each in self._begun.values()}
        self._kept = {slot: consumer for slot, consumer in wanted.items() if assignment.owner(slot) != consumer}
        return assignment.keeping(self._kept) if self._kept else assignment

    @property
    def may_move(self) -> bool:
        """A slot is kept for which there is no reason any more."""
        return bool(self._kept) and not self._kept.keys() <= {each.slot for each in self._begun.values()}

    def _forget(self, uuid: str) -> None:
        known = self._begun.pop(uuid, None)
        if known is not None:
            del self._uuids[known.first]
            self._firsts.remove(known.first.ledger_id, BitMap((known.first.entry_id,)))

    def check_invariants(self) -> None:
        self._firsts.check_invariants()
        assert len(self._firsts) == len(self._uuids) == len(self._begun)
