"""The read that is under way: at most one, told from outdated ones by its id; where the next one starts; when to try again.

Decides no reading by itself: a dispatcher asks `is_idle`, then calls `read_on` or `replay`.
"""

from wire.kernels.delivery_rows import ReaderRow
from wire.picked_runs import Picks
from wire.position import Position
from wire.run import EntryRun

from ..contract import EntriesPicked, EntriesRead, NothingToRead, Read, ReadFailed
from ..settings import DispatcherSettings


class Reader(ReaderRow):
    """Place, outstanding read and back-off of one dispatcher."""

    __slots__ = ("_read_id", "_settings", "_was_told_of_more")

    position: Position | None
    """Start of the next read that is no replay; None: the cursor's first unacknowledged entry."""
    _outstanding: Read | None

    def __init__(self, settings: DispatcherSettings) -> None:
        self._settings = settings
        self._read_id = 0
        self._outstanding = None
        self._was_told_of_more = False
        self._backoff_ms = 0
        self._messages_per_entry = 1.0
        self.position = None
        self.is_at_end = False
        """Nothing to read at `position` until EntriesAvailable."""
        self.retry_at_ms = None

    @property
    def outstanding(self) -> Read | None:
        return self._outstanding

    def is_idle(self, now_ms: int) -> bool:
        """No read is under way and none has to wait after a failure."""
        if self.retry_at_ms is not None and now_ms >= self.retry_at_ms:
            self.retry_at_ms = None
        return self._outstanding is None and self.retry_at_ms is None

    @property
    def is_resting(self) -> bool:
        """Whether nothing is to be read now, whatever the room: all was read, or a read is under way. No read failed lately."""
        return (self.is_at_end or self._outstanding is not None) and self.retry_at_ms is None

    def entries_for(self, messages: int) -> int:
        """Number of entries to read for that many permits, by the batches seen lately."""
        wanted = -int(-messages // self._messages_per_entry)
        return max(1, min(wanted, self._settings.dispatcher_max_read_batch_size))

    def read_on(self, entries_max: int) -> Read:
        self._was_told_of_more = False
        return self._read(self.position, entries_max, False)

    def replay(self, position: Position, entries_max: int) -> Read:
        return self._read(position, entries_max, True)

    def pick(self, picks: Picks) -> Read:
        """Entries that were read before, scattered over the log."""
        ledger_id, first = picks[0]
        return self._read(Position(ledger_id, first.min()), sum(len(entry_ids) for _, entry_ids in picks), True, picks)

    def accept(self, answer: EntriesRead | EntriesPicked | NothingToRead | ReadFailed) -> Read | None:
        """The read that this answers; None when it is outdated."""
        read = self._outstanding
        if read is None or read.read_id != answer.read_id:
            return None
        self._outstanding = None
        return read

    def succeeded(self, read: Read, answer: EntriesRead) -> None:
        """Goes on after the run; a dispatcher that does not give all of it away sets `position` back."""
        self._backoff_ms = 0
        run = answer.run
        self._messages_per_entry += (answer.metadata.message_count / run.count - self._messages_per_entry) / 4
        self._messages_per_entry = max(1.0, self._messages_per_entry)
        if not read.is_replay:
            self.position = Position(run.ledger_id, run.last_entry_id + 1)
            self.is_at_end = answer.is_last

    def is_before(self, run: EntryRun) -> bool:
        """Everything before the run was read, nothing is being read, and no read failed lately."""
        place = self.position
        return (
            self.is_at_end
            and self._outstanding is None
            and self.retry_at_ms is None
            and place is not None
            and place.entry_id == run.first_entry_id
            and place.ledger_id == run.ledger_id
        )

    def passed(self, run: EntryRun, message_count: int) -> None:
        """The run, the newest, was given away without being read."""
        count = len(run.offsets) - 1
        self._backoff_ms = 0
        self._messages_per_entry = max(1.0, self._messages_per_entry + (message_count / count - self._messages_per_entry) / 4)
        self.position = Position(run.ledger_id, run.first_entry_id + count)

    def picked(self) -> None:
        """The place where it reads on has nothing to do with that."""
        self._backoff_ms = 0

    def found_nothing(self, read: Read) -> None:
        if not read.is_replay:
            self.is_at_end = not self._was_told_of_more

    def failed(self, now_ms: int) -> None:
        first = self._settings.dispatcher_read_failure_backoff_initial_time_in_ms
        limit = self._settings.dispatcher_read_failure_backoff_max_time_in_ms
        self._backoff_ms = min(limit, max(first, 2 * self._backoff_ms))
        self.retry_at_ms = now_ms + self._backoff_ms

    def more_is_available(self) -> None:
        self.is_at_end = False
        self._was_told_of_more = True

    def stay_at(self, position: Position | None) -> None:
        """Sets where to read on: not all entries that were read could be delivered."""
        self.position = position
        self.is_at_end = False

    def move_to(self, position: Position | None) -> None:
        """Reads on from here; a read under way is outdated."""
        self._outstanding = None
        self.stay_at(position)

    def cancel(self) -> None:
        """Marks the read under way as outdated."""
        if self._outstanding is not None and not self._outstanding.is_replay:
            self.is_at_end = False
        self._outstanding = None

    def _read(self, position: Position | None, entries_max: int, is_replay: bool, picks: Picks | None = None) -> Read:
        assert self._outstanding is None, "one read at a time"
        self._read_id += 1
        bytes_max = self._settings.dispatcher_max_read_size_bytes
        self._outstanding = Read(self._read_id, position, entries_max, bytes_max, is_replay, picks)
        return self._outstanding
