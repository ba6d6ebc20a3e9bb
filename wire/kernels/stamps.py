"""BrokerEntryMetadata in front of the payload of each entry of a batch: when the broker got it, and which message it is.

The section is `0x0e02 | u32 size | BrokerEntryMetadata{broker_timestamp = 1, index = 2}`, before the client's checksum, which
does not cover it (PIP-70; Commands.addBrokerEntryMetadata). Reading it is `wire.kernels.metadata`'s and `messages`'.
"""

from array import array

import cython

from wire.run import EntryBatch

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        length_of,
        new_room,
        octets_of,
        room_in,
        varint_size,
        write_u32,
        write_varint,
    )

_COUNT = array("I", [0])


def _section_size(broker_timestamp: int, index: int) -> int:
    """With its magic and its size; either number is left out when it is negative."""
    size = 6
    if broker_timestamp >= 0:
        size += 1 + varint_size(broker_timestamp)
    if index >= 0:
        size += 1 + varint_size(index)
    return size


def _write_section(room: bytearray, at: int, broker_timestamp: int, index: int, size: int) -> int:
    """The position after it."""
    room[at] = 0x0E
    room[at + 1] = 0x02
    write_u32(room, at + 2, size - 6)
    at += 6
    if broker_timestamp >= 0:
        room[at] = 0x08
        at = write_varint(room, at + 1, broker_timestamp)
    if index >= 0:
        room[at] = 0x10
        at = write_varint(room, at + 1, index)
    return at


def stamp(batch: EntryBatch, message_counts: "array[int]", broker_timestamp: int, index: int, has_index: bool) -> EntryBatch:
    """The batch in a buffer of its own, with that section in each entry. `broker_timestamp` in milliseconds, -1: none.

    `message_counts` ("I") has one number per entry; `index` is that of the last message before the batch, -1 for none. An
    entry's index is that of its last message.
    """
    count = len(batch.offsets) - 1
    header_bytes = batch.header_bytes
    offsets = counts_of(batch.offsets)
    messages = counts_of(message_counts)
    size = length_of(batch.buffer)
    if len(message_counts) != count:
        raise ValueError(f"{len(message_counts)} numbers of messages for {count} entries")
    total = 0
    last = index
    for place in range(count):
        if offsets[place] + header_bytes > offsets[place + 1] or offsets[place + 1] > size:
            raise ValueError(f"entry {place} does not fit the buffer")
        last += messages[place]
        total += offsets[place + 1] - offsets[place] + _section_size(broker_timestamp, last if has_index else -1)
    if total >> 32:
        raise ValueError(f"{total} bytes are too many for a batch")
    buffer = new_room(total)
    found = _COUNT * (count + 1)
    stamped = counts_of(found)
    data = octets_of(batch.buffer)
    room = room_in(buffer)
    at = 0
    last = index
    stamped[0] = 0
    for place in range(count):
        start = offsets[place]
        end = offsets[place + 1]
        last += messages[place]
        copy_octets(room, at, data, start, start + header_bytes)
        at += header_bytes
        section = last if has_index else -1
        at = _write_section(room, at, broker_timestamp, section, _section_size(broker_timestamp, section))
        copy_octets(room, at, data, start + header_bytes, end)
        at += end - start - header_bytes
        stamped[place + 1] = at
    return EntryBatch(buffer, found, header_bytes, batch.message_count)
