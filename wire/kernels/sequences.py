"""Sequence ids of a run of SENDs, looked at as a whole: what deduplication asks of every run."""

from array import array

import cython

if not cython.compiled:
    from wire.kernels.octets import counts_of, words_of

_signed_max = 0x7FFFFFFFFFFFFFFF
_WORD = array("Q", [0])


def highest_if_ascending(sequence_ids: "array[int]", highest_sequence_ids: "array[int]") -> int:
    """The last sequence id of a run in which each entry begins above the end of the one before; -1 for any other run.

    Both have typecode "Q" and one element per entry; an entry ends at its highest sequence id, or at its sequence id where that
    is larger. Ids beyond 63 bits, which Java sees as negative, make it another run too.
    """
    count = len(sequence_ids)
    if len(highest_sequence_ids) != count:
        raise ValueError(f"{count} sequence ids, {len(highest_sequence_ids)} highest sequence ids")
    if count == 0:
        return -1
    firsts = words_of(sequence_ids)
    lasts = words_of(highest_sequence_ids)
    end = 0
    for index in range(count):
        first = firsts[index]
        if index and first <= end:
            return -1
        end = lasts[index]
        if end < first:
            end = first
        if end > _signed_max:
            return -1
    return end


def last_sequence_ids(
    sequence_ids: "array[int]", highest_sequence_ids: "array[int]", message_counts: "array[int]"
) -> "array[int]":
    """The last id of each entry ("Q"): its highest where it says one, else what a batch of so many messages has at least.

    `message_counts` has typecode "I", and no zeros.
    """
    count = len(sequence_ids)
    if len(highest_sequence_ids) != count or len(message_counts) != count:
        raise ValueError(f"{count} sequence ids, {len(highest_sequence_ids)} highest, {len(message_counts)} message counts")
    found = _WORD * count
    if count == 0:
        return found
    firsts = words_of(sequence_ids)
    highests = words_of(highest_sequence_ids)
    messages = counts_of(message_counts)
    lasts = words_of(found)
    for index in range(count):
        last = highests[index]
        if last == 0:
            last = firsts[index]
            if last < _signed_max:
                last += messages[index] - 1
        lasts[index] = last
    return found
