"""A message's place in its ledger as the sequence id under which its copy is sent. Pure.

A copy has a producer's name for each ledger, so that a sequence id says where its message was, without anything that has to be
remembered: what a broker's deduplication knows of that name is how far the copy is.
"""

from typing import Any

import numpy
import pyarrow.compute

from ...decode.octets import Places, Words
from ...errors import PipelineError

_INDEX_BITS = 20
"""A batch of more messages than that has more bytes than a broker takes."""


def sequence_ids(batch: Any, topic: str, after: int) -> Words:
    """Sequence ids of the rows of one ledger, rising, above `after`. PipelineError otherwise: a broker would drop the rows."""
    entries, indexes = _part(batch, "entry_id"), numpy.maximum(_part(batch, "batch_index"), 0)
    found = (entries << _INDEX_BITS) | indexes
    before = numpy.concatenate(([after], found[:-1]))
    wrong = numpy.flatnonzero((found <= before) | (indexes >> _INDEX_BITS > 0))
    if len(wrong):
        row = int(wrong[0])
        raise PipelineError(
            f"{topic}: message {indexes[row]} of entry {entries[row]} does not come in the order of its position, or has none "
            "that fits into a sequence id: it cannot be copied so that it is there once"
        )
    return found.astype(numpy.uint64)


def entry_of(sequence_id: int) -> int:
    """The entry of which a message has that sequence id."""
    return sequence_id >> _INDEX_BITS


def entries_of(ids: Words) -> Places:
    """Entry id in each sequence id; see `entry_of`."""
    return (ids >> numpy.uint64(_INDEX_BITS)).astype(numpy.int64)


def _part(batch: Any, name: str) -> Places:
    return numpy.asarray(pyarrow.compute.struct_field(batch.column("message_id"), name)).astype(numpy.int64)
