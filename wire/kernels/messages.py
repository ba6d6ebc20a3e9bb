"""Entries to MESSAGE frames: a span of a run becomes one buffer that is written to the consumer's socket."""

from array import array
from collections.abc import Mapping, Sequence

import cython

from wire.kernels.delivery_rows import ConsumerHandleRow
from wire.kernels.rows import PartRow
from wire.run import Buffer, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        finished,
        length_of,
        new_octets,
        octets_of,
        read_u16,
        read_u32,
        signed_words_of,
        varint_size,
        words_of,
        writable,
        write_u32,
        write_varint,
    )

_LARGEST = (1 << 31) - 1
_WORD = array("Q", [0])
_NO_PICKS = array("q", [0])


def _payload_start(data: Buffer, at: int, end: int, keep_broker_entry_metadata: bool) -> int:
    """Begin of the bytes for the client: after the broker entry metadata, where a stored payload has it."""
    if keep_broker_entry_metadata or end - at < 6 or read_u16(data, at) != 0x0E02:
        return at
    size = read_u32(data, at + 2)
    return at + 6 + size if size <= end - at - 6 else at


def _command_size(
    consumer_id: int, ledger_id: int, entry_id: int, partition: int, redelivery_count: int, epoch: int, has_epoch: bool
) -> int:
    """Bytes of a CommandMessage, ack set apart."""
    message_id = 2 + varint_size(ledger_id) + varint_size(entry_id)
    if partition >= 0:
        message_id += 1 + varint_size(partition)
    size = 1 + varint_size(consumer_id) + 2 + message_id
    if redelivery_count > 0:
        size += 1 + varint_size(redelivery_count)
    if has_epoch:
        size += 1 + varint_size(epoch)
    return size


def _ack_set_size(ack_set: "array[int] | None") -> int:
    if ack_set is None:
        return 0
    words = words_of(ack_set)
    size = 0
    for index in range(len(ack_set)):
        size += 1 + varint_size(words[index])
    return size


def _write_ack_set(room: bytearray, at: int, ack_set: "array[int] | None") -> int:
    if ack_set is None:
        return at
    words = words_of(ack_set)
    for index in range(len(ack_set)):
        room[at] = 0x20
        at = write_varint(room, at + 1, words[index])
    return at


def _write_message_id(room: bytearray, at: int, ledger_id: int, entry_id: int, partition: int) -> int:
    """Write the message id's field of CommandMessage; the length, below 128, comes last."""
    room[at] = 0x12
    start = at + 2
    room[start] = 0x08
    at = write_varint(room, start + 1, ledger_id)
    room[at] = 0x10
    at = write_varint(room, at + 1, entry_id)
    if partition >= 0:
        room[at] = 0x18
        at = write_varint(room, at + 1, partition)
    room[start - 1] = at - start
    return at


def _words(ack_sets: Mapping[int, Sequence[int]], index: int) -> "array[int] | None":
    found = ack_sets.get(index)
    return None if found is None else array("Q", [word & 0xFFFFFFFFFFFFFFFF for word in found])


def message_frames(
    run: EntryRun,
    indexes: range | Sequence[int],
    consumer_id: int,
    partition: int,
    redelivery_counts: Sequence[int] | None,
    ack_sets: Mapping[int, Sequence[int]] | None,
    consumer_epoch: int | None,
    keep_broker_entry_metadata: bool = False,
) -> bytes:
    """MESSAGE frames for the entries of `run` at `indexes`, in that order, in one buffer.

    `redelivery_counts` are parallel to `indexes`; `ack_sets` are by index in the run. A `partition` below 0, a redelivery count
    of 0 and a `consumer_epoch` of None are left out. A stored payload is sent as it is, except that broker entry metadata is
    cut off unless `keep_broker_entry_metadata`.
    """
    counts = None if redelivery_counts is None else array("q", redelivery_counts)
    if counts is not None and len(counts) != len(indexes):
        raise ValueError(f"{len(indexes)} indexes, {len(counts)} redelivery counts")
    words = None if not ack_sets else [_words(ack_sets, index) for index in indexes]
    if isinstance(indexes, range):
        picks, first, step = _NO_PICKS, indexes.start, indexes.step
    else:
        picks, first, step = array("q", indexes), 0, 0
    return _frames(
        run, len(indexes), picks, first, step, consumer_id, partition, counts, words, consumer_epoch, keep_broker_entry_metadata
    )


def _frames(
    run: EntryRun,
    picked: int,
    picks: "array[int]",
    first: int,
    step: int,
    consumer_id: int,
    partition: int,
    counts: "array[int] | None",
    ack_sets: "list[array[int] | None] | None",
    consumer_epoch: int | None,
    keep_broker_entry_metadata: bool,
) -> bytes:
    """Entry `place` of the result is `first + step * place` of the run when `step` is not 0, else `picks[place]`.

    Long because it measures and then writes, with everything that the loops need in C variables.
    """
    count = len(run.offsets) - 1
    chosen = signed_words_of(picks)
    redeliveries = signed_words_of(picks if counts is None else counts)
    has_redeliveries = counts is not None
    has_epoch = consumer_epoch is not None
    epoch = 0 if consumer_epoch is None else consumer_epoch
    header_bytes = run.header_bytes
    id_step = 0 if run.is_passing else 1
    ledger_id = run.ledger_id * id_step
    first_entry_id = run.first_entry_id * id_step
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    size = length_of(run.buffer)
    sizes = _WORD * picked
    commands = words_of(sizes)
    total = 0
    redelivery_count = 0
    for place in range(picked):
        index = first + step * place if step else chosen[place]
        if index < 0 or index >= count:
            raise IndexError(f"index {index} of a run of {count}")
        at = offsets[index] + header_bytes
        end = offsets[index + 1]
        if at > end or end > size:
            raise ValueError(f"entry {index} does not fit the buffer")
        if has_redeliveries:
            redelivery_count = redeliveries[place]
        entry_id = first_entry_id + index * id_step
        command = _command_size(consumer_id, ledger_id, entry_id, partition, redelivery_count, epoch, has_epoch)
        if ack_sets is not None:
            command += _ack_set_size(ack_sets[place])
        commands[place] = command
        total += 11 + varint_size(command) + command + end - _payload_start(data, at, end, keep_broker_entry_metadata)
    if total > _LARGEST:
        raise ValueError(f"{total} bytes of frames in one buffer")
    frames = new_octets(total)
    room = writable(frames)
    position = 0
    for place in range(picked):
        index = first + step * place if step else chosen[place]
        end = offsets[index + 1]
        at = _payload_start(data, offsets[index] + header_bytes, end, keep_broker_entry_metadata)
        command = 3 + varint_size(commands[place]) + commands[place]
        write_u32(room, position, 4 + command + end - at)
        write_u32(room, position + 4, command)
        room[position + 8] = 0x08
        room[position + 9] = 9
        room[position + 10] = 0x4A
        position = write_varint(room, position + 11, commands[place])
        room[position] = 0x08
        position = write_varint(room, position + 1, consumer_id)
        position = _write_message_id(room, position, ledger_id, first_entry_id + index * id_step, partition)
        if has_redeliveries and redeliveries[place] > 0:
            room[position] = 0x18
            position = write_varint(room, position + 1, redeliveries[place])
        if ack_sets is not None:
            position = _write_ack_set(room, position, ack_sets[place])
        if has_epoch:
            room[position] = 0x28
            position = write_varint(room, position + 1, epoch)
        copy_octets(room, position, data, at, end)
        position += end - at
    return finished(frames)


def part_frames(deliveries: Sequence[tuple[ConsumerHandleRow, PartRow, int | None, object]]) -> bytes:
    """MESSAGE frames of parts for consumers of one connection, in order, in one buffer: as `message_frames` of all entries of
    each, for the first time. Long for the same reason as `_frames`."""
    total = 0
    for handle, part, consumer_epoch, _ in deliveries:
        mix = part.mix
        offsets = counts_of(mix.offsets)
        if offsets[part.start + part.count] > length_of(mix.buffer):
            raise ValueError(f"entries {part.start}+{part.count} do not fit the buffer")
        has_epoch = consumer_epoch is not None
        epoch = 0 if consumer_epoch is None else consumer_epoch
        header_bytes = mix.header_bytes
        for index in range(part.count):
            at = offsets[part.start + index] + header_bytes
            end = offsets[part.start + index + 1]
            command = _command_size(
                handle.consumer_id, part.ledger_id, part.first_entry_id + index, handle._partition, 0, epoch, has_epoch
            )
            total += 11 + varint_size(command) + command + end - at
    if total > _LARGEST:
        raise ValueError(f"{total} bytes of frames in one buffer")
    frames = new_octets(total)
    room = writable(frames)
    position = 0
    for handle, part, consumer_epoch, _ in deliveries:
        mix = part.mix
        offsets = counts_of(mix.offsets)
        data = octets_of(mix.buffer)
        has_epoch = consumer_epoch is not None
        epoch = 0 if consumer_epoch is None else consumer_epoch
        header_bytes = mix.header_bytes
        for index in range(part.count):
            at = offsets[part.start + index] + header_bytes
            end = offsets[part.start + index + 1]
            entry_id = part.first_entry_id + index
            command = _command_size(handle.consumer_id, part.ledger_id, entry_id, handle._partition, 0, epoch, has_epoch)
            size = 3 + varint_size(command) + command
            write_u32(room, position, 4 + size + end - at)
            write_u32(room, position + 4, size)
            room[position + 8] = 0x08
            room[position + 9] = 9
            room[position + 10] = 0x4A
            position = write_varint(room, position + 11, command)
            room[position] = 0x08
            position = write_varint(room, position + 1, handle.consumer_id)
            position = _write_message_id(room, position, part.ledger_id, entry_id, handle._partition)
            if has_epoch:
                room[position] = 0x28
                position = write_varint(room, position + 1, epoch)
            copy_octets(room, position, data, at, end)
            position += end - at
    return finished(frames)
