"""EntryMetadata: metadata that a managed ledger puts before each entry for `brokerEntryMetadataInterceptors` (PIP-70).

AppendBrokerTimestampMetadataInterceptor: the time at which the broker got the entry. AppendIndexMetadataInterceptor: the index
of its last message, counted from 0 over the life of the topic, given when an entry is appended. It is stored as the property
`index` of the managed ledger, as old as the last write of the list, and in the last entry itself: the next owner of the managed
ledger goes on from the larger one (Apache: ManagedLedgerInterceptorImpl). Here the property is the index of the last stored
entry; there of the last appended one, after which a crash may leave a gap. Nothing of this exists while no interceptor is set.
"""

from collections.abc import Mapping

from managed_ledger.errors import BrokenMetadata
from ports.clock import Clock
from wire.kernels.metadata import scan
from wire.kernels.stamps import stamp
from wire.payloads import message_index
from wire.run import EntryBatch, EntryRun

INDEX_PROPERTY = "index"


class EntryMetadata:
    """Entry metadata of one managed ledger. `index`: last message appended, `stored_index`: last one stored; -1: none yet."""

    def __init__(self, clock: Clock, *, has_timestamp: bool, has_index: bool) -> None:
        self.has_index = has_index
        self.index = -1
        self.stored_index = -1
        self._has_timestamp = has_timestamp
        self._clock = clock

    def stamped(self, batch: EntryBatch) -> EntryBatch:
        """The batch as it is to be stored. From now on the index counts its messages."""
        counts = scan(EntryRun(0, 0, batch.buffer, batch.offsets, batch.header_bytes))
        now_ms = self._clock.now_ms() if self._has_timestamp else -1
        stamped = stamp(batch, counts.message_counts, now_ms, self.index, self.has_index)
        self.index += counts.message_count
        return stamped

    def stored(self, run: EntryRun) -> None:
        """Call in the order of the appends."""
        if self.has_index:
            self.stored_index = max(self.stored_index, message_index(run.payload(run.last_entry_id)))

    def take_back(self) -> None:
        """Take back appends that will not be stored: their indexes are given again (`afterFailedAddEntry`)."""
        self.index = self.stored_index

    def found(self, name: str, properties: Mapping[str, str], last: EntryRun | None) -> None:
        """Go on from the properties of the managed ledger as it is opened; `last` begins with its last entry.

        BrokenMetadata when the property is no number.
        """
        text = properties.get(INDEX_PROPERTY, "-1")
        try:
            self.stored_index = max(self.stored_index, int(text))
        except ValueError as error:
            raise BrokenMetadata(f"{name}: its property {INDEX_PROPERTY} is no number: {text!r}") from error
        if last is not None:
            self.stored_index = max(self.stored_index, message_index(last.payload(last.first_entry_id)))
        self.index = self.stored_index

    def properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """With the one that is kept here."""
        return {**properties, INDEX_PROPERTY: str(self.stored_index)} if self.has_index else dict(properties)
