"""Positions in bodies: Apache's MessageIdImpl and ResetCursorData, to and from positions of topics. Owns nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from managed_ledger.contract import EARLIEST, LATEST
from wire.kernels.metadata import scan
from wire.position import Position
from wire.run import FLAG_BATCH

from ...topic.contract import Topic
from .answers import BadRequest, whole_number

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A message: an entry, or with a `batch_index` of 0 or more one of its batch; `is_excluded`: the message after it."""

    position: Position
    batch_index: int = -1
    is_excluded: bool = False
    properties: Mapping[str, str] | None = None


def read_place(body: Any) -> Place:
    """BadRequest. A ledger below 0 is the earliest message, nothing given the latest."""
    if not isinstance(body, dict):
        raise BadRequest("expected a message id: an object with ledgerId and entryId")
    ledger_id, entry_id = _number(body, "ledgerId", LATEST.ledger_id), _number(body, "entryId", LATEST.entry_id)
    if ledger_id > LATEST.ledger_id or not -1 <= entry_id <= LATEST.entry_id:
        raise BadRequest("ledgerId, entryId: expected numbers of 63 bits, or -1")
    if ledger_id < 0 or (ledger_id, entry_id) == LATEST:
        return Place(EARLIEST if ledger_id < 0 else LATEST, properties=_properties(body))
    batch_index = _number(body, "batchIndex", -1)
    excluded = body.get("excluded", body.get("isExcluded"))  # as Jackson writes it, and as Apache's documents do
    is_excluded = str(excluded).lower() == "true"
    return Place(Position(ledger_id, max(entry_id, 0)), batch_index, is_excluded, _properties(body))


async def first_position(topic: Topic, place: Place) -> tuple[Position, tuple[int, ...]]:
    """Returns the first position to read: an entry, and inside a batch its ack set (bit 1 = not acknowledged).

    (PersistentTopicsBase.calculatePositionAckSet; as there the entry is read, because the place does not say how large it is.)
    """
    position = place.position
    after = Position(position.ledger_id, position.entry_id + 1)
    if position in (EARLIEST, LATEST):
        return position, ()
    size = await _batch_size(topic, position) if place.batch_index >= 0 else 0
    if not size:
        return (after if place.is_excluded else position), ()
    first = place.batch_index + place.is_excluded
    if first >= size:
        return after, ()
    bits = (1 << size) - (1 << first)
    return position, tuple(bits >> shift & _WORD for shift in range(0, size, 64)) if first else ()


async def _batch_size(topic: Topic, position: Position) -> int:
    """0: there is no batch there."""
    run = await topic.operations.read(position)
    if run is None:
        return 0
    metadata = scan(run)
    return metadata.message_counts[0] if metadata.flags[0] & FLAG_BATCH else 0


def message_id_json(position: Position, partition_index: int) -> dict[str, int]:
    """Apache's MessageIdImpl."""
    return {"ledgerId": position.ledger_id, "entryId": position.entry_id, "partitionIndex": partition_index}


def last_message_id_json(position: Position, partition_index: int) -> dict[str, int]:
    """Apache's BatchMessageIdImpl, of an entry as a whole."""
    return message_id_json(position, partition_index) | {"batchSize": 0, "batchIndex": -1}


def _number(body: Mapping[str, Any], name: str, default: int) -> int:
    value = whole_number(body.get(name, default))
    if value is None:
        raise BadRequest(f"{name}: expected a whole number")
    return value


def _properties(body: Mapping[str, Any]) -> Mapping[str, str] | None:
    found = body.get("properties")
    if found is not None and not isinstance(found, dict):
        raise BadRequest("properties: expected an object")
    return None if found is None else {str(key): str(value) for key, value in found.items()}
