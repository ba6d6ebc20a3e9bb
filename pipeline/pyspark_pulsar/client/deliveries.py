"""The MESSAGE commands of a block of frames, as entries. Pure: by vector operations, like what follows them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from wire.generated.pulsar_api_pb2 import BaseCommand

from ..decode.octets import Places
from ..decode.protobuf_columns import Fields, Spans, scan
from ..decode.sections import Block
from ..positions import LedgerRange
from .connection import FrameBlock

_TYPE, _MESSAGE, _MESSAGE_ID, _LEDGER_ID, _ENTRY_ID = 1, 9, 2, 1, 2


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Entries in the order in which they came, and the other commands between them."""

    block: Block
    others: list[BaseCommand]


def deliveries(frames: FrameBlock) -> Deliveries:
    commands = scan(frames.data, frames.command_starts, frames.payload_starts, Fields((_TYPE,), (_MESSAGE,)))
    is_message = commands.numbers[_TYPE].values == BaseCommand.MESSAGE
    rows = numpy.flatnonzero(is_message)
    message = _part(commands.spans[_MESSAGE], rows)
    ids = scan(frames.data, message.starts, message.ends, Fields(spans=(_MESSAGE_ID,))).spans[_MESSAGE_ID]
    numbers = scan(frames.data, ids.starts, ids.ends, Fields((_LEDGER_ID, _ENTRY_ID))).numbers
    places = [numbers[each].values.view(numpy.int64) for each in (_LEDGER_ID, _ENTRY_ID)]
    block = Block(frames.data, frames.payload_starts[rows], frames.ends[rows], places[0], places[1])
    others = [_command(frames, row) for row in numpy.flatnonzero(~is_message).tolist()]
    return Deliveries(block, others)


def between(block: Block, first: tuple[int, int], last: tuple[int, int]) -> Block:
    """The entries from `first` to `last`, both in it."""
    ledgers, entries = block.ledger_ids, block.entry_ids
    is_after = (ledgers > first[0]) | ((ledgers == first[0]) & (entries >= first[1]))
    is_before = (ledgers < last[0]) | ((ledgers == last[0]) & (entries <= last[1]))
    kept = is_after & is_before
    return block if bool(kept.all()) else block.chosen(numpy.flatnonzero(kept))


def parted(block: Block, ranges: Sequence[LedgerRange]) -> tuple[Block, Block]:
    """The entries of these ranges, which are in order, and the others."""
    kept = numpy.zeros(block.count, numpy.bool_)
    for ledger_id in numpy.unique(block.ledger_ids).tolist():
        these = [each for each in ranges if each.ledger_id == ledger_id]
        firsts = numpy.array([each.first_entry_id for each in these], numpy.int64)
        ends = numpy.array([*(each.end_entry_id for each in these), 0], numpy.int64)
        rows = numpy.flatnonzero(block.ledger_ids == ledger_id)
        at = numpy.searchsorted(firsts, block.entry_ids[rows], "right") - 1
        kept[rows] = (at >= 0) & (block.entry_ids[rows] < ends[at])
    return block.chosen(numpy.flatnonzero(kept)), block.chosen(numpy.flatnonzero(~kept))


def _part(spans: Spans, rows: Places) -> Spans:
    return Spans(spans.starts[rows], spans.ends[rows])


def _command(frames: FrameBlock, row: int) -> BaseCommand:
    return BaseCommand.FromString(frames.data[frames.command_starts[row] : frames.payload_starts[row]].tobytes())
