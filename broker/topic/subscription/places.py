"""Finding places in a topic: the last message that a client can get, the first one published at a time, the one of an index.

Holds nothing."""

from collections.abc import Callable, Sequence

from managed_ledger.contract import LATEST, ManagedLedger
from wire.kernels.metadata import publish_times, scan
from wire.payloads import message_index
from wire.position import Position
from wire.run import FLAG_BATCH, FLAG_MARKER, EntryRun, RunMetadata

from ..contract import LastMessage
from ..transactions.read_committed import ReadCommitted

_UNLIMITED = 1 << 62


async def last_message(
    ledger: ReadCommitted | ManagedLedger, mark_delete: Position, metadata_of: Callable[[EntryRun], RunMetadata] = scan
) -> LastMessage:
    """The newest entry that is no marker; entry -1 when there is none (consumed and trimmed, or never published).

    A last message that cannot be delivered would make `hasMessageAvailable` true for ever.
    """
    position = ledger.last_confirmed
    while position.entry_id >= 0 and position >= ledger.first_position():
        run = await ledger.read(position, 1, _UNLIMITED)
        if run is None or run.first_entry_id != position.entry_id or run.ledger_id != position.ledger_id:
            break
        metadata = metadata_of(run)
        if not metadata.any_flags & FLAG_MARKER:
            index = metadata.message_counts[0] - 1 if metadata.any_flags & FLAG_BATCH else -1
            return LastMessage(position, index, mark_delete)
        position = ledger.previous_position(position)
    return LastMessage(Position(position.ledger_id, -1), -1, mark_delete)


async def first_published_at_or_after(ledger: ManagedLedger, publish_time_ms: int) -> Position:
    """Position found by binary search, which relies on publish times that do not fall; LATEST when all are older."""

    def is_at_or_after(run: EntryRun) -> Sequence[bool]:
        return [time >= publish_time_ms for time in publish_times(run)]

    found = await ledger.find_first(is_at_or_after)
    return LATEST if found is None else found


async def first_with_index_at_or_after(ledger: ManagedLedger, index: int) -> Position | None:
    """The entry that holds the message of that index; of one that was trimmed the first entry there is; None: not there yet.

    Entries without an index, from before there were any, count as older (PIP-415).
    """

    def is_at_or_after(run: EntryRun) -> Sequence[bool]:
        return [message_index(run.payload(entry_id)) >= index for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]

    return await ledger.find_first(is_at_or_after)


def batch_size(ack_set: Sequence[int]) -> int:
    """Size of the batch that a SEEK goes into: its last message is the highest one that is unacknowledged."""
    last = max(index for index, word in enumerate(ack_set) if word)
    return 64 * last + (ack_set[last] & 0xFFFF_FFFF_FFFF_FFFF).bit_length()
