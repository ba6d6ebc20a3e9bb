"""Delivery times of the entries of a run: `deliver_at_time` of their MessageMetadata."""

from array import array

import cython

from wire.run import Buffer, EntryBatch, EntryRun

if not cython.compiled:
    from wire.kernels.metadata import _check, _read_metadata
    from wire.kernels.octets import counts_of, octets_of, signed_words_of, varint_value, words_of

_FIELDS = 19
"""Number of places that `wire.kernels.metadata` fills."""
_signed_max = 0x7FFFFFFFFFFFFFFF
_WORD = array("Q", [0])
_SIGNED_WORD = array("q", [0])


def deliver_times(run: EntryRun | EntryBatch) -> "array[int]":
    """Delivery time of each entry, in milliseconds since the epoch; -1 where it has no such time, or a negative one."""
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    times = _SIGNED_WORD * count
    found = signed_words_of(times)
    for index in range(count):
        found[index] = _deliver_time(data, fields, offsets[index] + header_bytes, offsets[index + 1])
    return times


def longest_delay(run: EntryRun | EntryBatch) -> int:
    """Milliseconds from publish time to delivery time, of the entry where that is most; -1 when none is delivered later."""
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    longest = -1
    for index in range(count):
        time = _deliver_time(data, fields, offsets[index] + header_bytes, offsets[index + 1])
        if time >= 0:
            time -= varint_value(data, fields[6], fields[7]) & _signed_max
            if time > longest:
                longest = time
    return longest


def _deliver_time(data: Buffer, fields: "array[int]", at: int, end: int) -> int:
    """Delivery time in the payload section [at, end), which is parsed into `fields`."""
    if not _read_metadata(data, at, end, fields) or not fields[17]:
        return -1
    value = varint_value(data, fields[17], fields[18])
    return -1 if value > _signed_max else value
