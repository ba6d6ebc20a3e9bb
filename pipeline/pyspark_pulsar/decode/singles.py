"""The messages of many batches, with what their metadata say: by the compiled kernel where it is there, else by numpy.

The kernel (`wire/kernels/columns.py`) takes what clients write; batches with anything else among them, damaged ones too, are
numpy's. Both find the same.
"""

from dataclasses import dataclass

import numpy

from .batches import Messages, messages_of
from .compiled import kernel
from .octets import Flags, Octets, Places, Words
from .protobuf_columns import Columns, Fields, Numbers, Repeated, Spans, scan
from .rooms import Rooms

_PROPERTIES, _KEY, _COMPACTED_OUT, _EVENT_TIME, _KEY_IS_BASE64, _SEQUENCE_ID, _NULL_VALUE = 1, 2, 4, 5, 6, 8, 9
_SINGLE = Fields((_COMPACTED_OUT, _EVENT_TIME, _KEY_IS_BASE64, _SEQUENCE_ID, _NULL_VALUE), (_KEY,))
_PROPERTIES_ALONE = Fields(repeated=(_PROPERTIES,))
_MESSAGE_BYTES_MIN = 6
_ROOMS = Rooms(2)


@dataclass(frozen=True, slots=True)
class Singles:
    """Messages of batches, batch by batch, in order. Messages of broken batches have what was found of them."""

    messages: Messages
    keys: Spans
    event_times: Words
    sequence_ids: Words
    has_sequence_id: Flags
    is_null: Flags
    is_base64: Flags
    is_compacted_out: Flags
    has_properties: bool
    """Whether any may have some."""

    def properties(self, data: Octets) -> Repeated:
        if not self.has_properties:
            nothing = numpy.zeros(0, numpy.int64)
            return Repeated(nothing, nothing, nothing)
        found = scan(data, self.messages.metadata_starts, self.messages.metadata_ends, _PROPERTIES_ALONE)
        return found.repeated[_PROPERTIES]


def singles_of(data: Octets, starts: Places, ends: Places, counts: Places) -> Singles:
    """Messages of the batches `data[start:end]`, whose metadata say that they have `counts` messages."""
    found = _by_kernel(data, starts, ends, counts)
    if found is not None:
        return found
    messages = messages_of(data, starts, ends, counts)
    return _singles(messages, scan(data, messages.metadata_starts, messages.metadata_ends, _SINGLE))


def _singles(messages: Messages, columns: Columns) -> Singles:
    numbers = columns.numbers
    sequence_ids: Numbers = numbers[_SEQUENCE_ID]
    return Singles(
        messages=messages,
        keys=columns.spans[_KEY],
        event_times=numbers[_EVENT_TIME].values,
        sequence_ids=sequence_ids.values,
        has_sequence_id=sequence_ids.present,
        is_null=numbers[_NULL_VALUE].values != 0,
        is_base64=numbers[_KEY_IS_BASE64].values != 0,
        is_compacted_out=numbers[_COMPACTED_OUT].values != 0,
        has_properties=True,
    )


def _by_kernel(data: Octets, starts: Places, ends: Places, counts: Places) -> Singles | None:
    """None where there is no kernel, or where it does not take all of them."""
    if kernel is None or bool((counts > (ends - starts) // _MESSAGE_BYTES_MIN).any()) or bool((counts < 0).any()):
        return None
    total = int(counts.sum())
    table = _ROOMS.of(8 * kernel.COLUMNS * total).view(numpy.int64).reshape(kernel.COLUMNS, total)
    flags = numpy.empty(total, numpy.uint8)
    places = [numpy.ascontiguousarray(each).data for each in (starts, ends, counts)]
    if not kernel.take_messages(data.data, *places, table.reshape(-1).data, flags.data):
        return None
    batches, indexes, metadata_starts, metadata_ends, payload_ends, key_starts, key_ends, event_times, sequence_ids = table
    is_broken = numpy.zeros(len(starts), numpy.bool_)
    return Singles(
        messages=Messages(metadata_starts, metadata_ends, payload_ends, batches, indexes, is_broken),
        keys=Spans(key_starts, key_ends),
        event_times=event_times.view(numpy.uint64),
        sequence_ids=sequence_ids.view(numpy.uint64),
        has_sequence_id=(flags & kernel.HAS_SEQUENCE_ID) != 0,
        is_null=(flags & kernel.IS_NULL) != 0,
        is_base64=(flags & kernel.IS_BASE64) != 0,
        is_compacted_out=(flags & kernel.IS_COMPACTED_OUT) != 0,
        has_properties=bool((flags & kernel.HAS_PROPERTIES).any()),
    )
