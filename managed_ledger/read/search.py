"""Finding the first entry for which an ordered predicate holds, by binary search, or the last one. Reads single entries; keeps
nothing."""

from collections.abc import Awaitable, Callable, Sequence

from wire.position import Position
from wire.run import EntryRun

from ..ledgers.sequence import LedgerSequence

LOST_ENTRIES_MAX = 100
"""Lost entries that are passed over in the search for the last readable one; beyond them there is none."""

Read = Callable[[Position, int, int], Awaitable[EntryRun | None]]


async def find_first(
    sequence: LedgerSequence, read: Read, is_at_or_after: Callable[[EntryRun], Sequence[bool]]
) -> Position | None:
    """First entry among those that are there at the begin; ledgers trimmed meanwhile count as before it."""
    low, high = sequence.first_index, sequence.end_index
    while low < high:
        middle = (low + high) // 2
        if middle < sequence.first_index:
            low = sequence.first_index
            continue
        run = await read(sequence.position_at(middle), 1, 1)
        if run is not None and is_at_or_after(run)[0]:
            high = middle
        else:
            low = middle + 1
    return sequence.position_at(low) if sequence.first_index <= low < sequence.end_index else None


async def last_readable(sequence: LedgerSequence, read: Read) -> EntryRun | None:
    """A run that begins with the last entry; with autoSkipNonRecoverableData with the last one that is not lost."""
    first, position = sequence.first_position(), sequence.last_confirmed
    for _ in range(LOST_ENTRIES_MAX):
        if position.entry_id < 0 or position < first:
            break
        run = await read(position, 1, 1)
        if run is not None:
            return run
        position = sequence.previous_position(position)
    return None
