"""RequestStats: the requests to a bookie's port, by operation, as BookKeeper's RequestStats names them. Pure."""

from collections.abc import Callable

from ports.metrics.op_stats import OpStats
from wire.bookie.requests import (
    Add,
    Authenticate,
    BatchRead,
    DescribeDisk,
    Force,
    ListEntries,
    LongPoll,
    Operation,
    Read,
    ReadLac,
    Rejected,
    StartTls,
    WriteLac,
)

ADD, READ, FENCE, POLL = "ADD_ENTRY", "READ_ENTRY", "READ_ENTRY_FENCE", "READ_ENTRY_LONG_POLL"
NAMES = (
    ADD,
    READ,
    FENCE,
    POLL,
    "WRITE_LAC",
    "READ_LAC",
    "FORCE_LEDGER",
    "GET_BOOKIE_INFO",
    "GET_LIST_OF_ENTRIES_OF_LEDGER",
)
_BY_TYPE: dict[type[Operation], str] = {
    Add: ADD,
    LongPoll: POLL,
    WriteLac: "WRITE_LAC",
    ReadLac: "READ_LAC",
    Force: "FORCE_LEDGER",
    DescribeDisk: "GET_BOOKIE_INFO",
    ListEntries: "GET_LIST_OF_ENTRIES_OF_LEDGER",
}
"""Without reads, which are of two kinds, and requests that are not counted."""


class RequestStats:
    """Request statistics of one bookie. `read_bytes` and `written_bytes`: of entries, over all connections."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        """`now`: seconds on the clock by which they are measured."""
        self.now = now
        self.operations = {name: OpStats() for name in NAMES}
        self.adds, self.reads = self.operations[ADD], self.operations[READ]
        self.read_bytes = self.written_bytes = 0
        self.local_entries = 0
        """Entries whose place was told to a reader on this machine; their bytes are in `read_bytes`."""

    def of(self, operation: Operation) -> OpStats | None:
        """None: such requests are not counted."""
        match operation:
            case Read() | BatchRead():
                return self.operations[READ if operation.fence_key is None else FENCE]
            case Authenticate() | StartTls() | Rejected():
                return None
        return self.operations[_BY_TYPE[type(operation)]]
