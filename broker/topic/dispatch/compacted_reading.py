"""Reading of a consumer that reads compacted: the compacted ledger through the horizon, then the log.

(Apache: CompactedTopicUtils, ServerCnx.handleGetLastMessageId.) Owns nothing but where the consumer began. A place in ledgers
that are trimmed is known to the compacted ledger alone; a cursor cannot be there, so a consumer that has acknowledged nothing
of the log begins anew where it began.
"""

from pyroaring import BitMap

from broker.compaction.compacted_ledger import CompactedRun
from broker.compaction.compacted_topic import CompactedTopic
from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedger
from wire.position import Position

from ..contract import LastMessage, SubscribeRequest

_NO_MESSAGE = Position(-1, -1)


class CompactedReading:
    """Compacted reading of one consumer; `start` is the first position it asked for, None: the first that comes."""

    def __init__(self, topic: CompactedTopic, log: ManagedLedger, cursor: ManagedCursor, start: Position | None) -> None:
        self._topic = topic
        self._log = log
        self._cursor = cursor
        self._start = start

    def place(self, position: Position | None) -> Position | None:
        """Next position in the compacted ledger; None: in the log. `position` None: at the first unacknowledged entry."""
        horizon = self._topic.horizon
        if horizon is None:
            return None
        if position is None:
            position = self._cursor.first_unacknowledged()
            first = self._log.first_position()
            if self._start is not None and position <= first:
                position = min(self._start, first)
        return position if position <= horizon else None

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> CompactedRun | None:
        """None: nothing is left before the horizon. LedgerError, ValueError."""
        return await self._topic.read(position, entries_max, bytes_max)

    def after_horizon(self) -> Position:
        """Next position in the log."""
        horizon = self._topic.horizon
        return self._log.first_position() if horizon is None else self._log.next_position(horizon)

    def known(self, found: CompactedRun) -> tuple[Position, BitMap]:
        """Mark-delete and the acknowledgements after it, as far as the cursor knows: none of deleted ledgers."""
        run = found.run
        if run.ledger_id < self._log.first_position().ledger_id:
            return EARLIEST, found.missing
        return self._cursor.mark_delete, found.missing | self._cursor.acknowledged_in(run.ledger_id)


def compacted_start(request: SubscribeRequest) -> Position | None:
    """Start of a consumer that reads compacted: a reader's named position, others as the first time."""
    if request.start is not None:
        return EARLIEST if request.start.ledger_id < 0 else request.start
    return EARLIEST if request.from_earliest else None


async def last_message_of_compacted(topic: CompactedTopic, found: LastMessage) -> LastMessage:
    """The last message that such a consumer gets, where `found` is the log's. LedgerError, ValueError."""
    horizon, mark_delete = topic.horizon, found.mark_delete
    if horizon is None or (found.position.entry_id >= 0 and found.position > horizon):
        return found
    last = await topic.last()
    return (
        LastMessage(_NO_MESSAGE, -1, mark_delete) if last is None else LastMessage(last.position, last.batch_index, mark_delete)
    )
