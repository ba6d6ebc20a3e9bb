"""ManagedLedgerSettings: Apache's keys of broker.conf, as far as managed ledgers and cursors read them.

| field | where the default differs from Apache's, why |
| --- | --- |
| managed_ledger_cache_size_mb | 64 (a fifth of direct memory): bookie and cache share the buffers of what is fresh |
| managed_ledger_max_reads_in_flight_size_in_mb | 32 (0): bytes on their way from ledgers into memory; 0: no bound |
| managed_ledger_default_mark_delete_rate_limit | the same; but see `cursor/throttle.py` for what came too soon |
| managed_ledger_max_unacked_ranges_to_persist | the same; beyond it Apache drops holes, here they are written as segments |
| managed_cursor_hole_cache_size_mb | not Apache's: segments of holes that are kept in memory (docs/cursor-segments.md) |
"""

from dataclasses import dataclass

from wire.compressed_metadata import COMPRESSIONS, THRESHOLD_BYTES, Compression

MEGABYTE = 1 << 20
BROKER_ENTRY_METADATA_INTERCEPTORS = (
    "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
    "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
)


@dataclass(frozen=True, slots=True)
class ManagedLedgerSettings:
    """Settings of all managed ledgers of a process; see the table above."""

    managed_ledger_max_entries_per_ledger: int = 50_000
    """Entries after which a topic goes on in a new ledger."""
    managed_ledger_min_ledger_rollover_time_minutes: int = 10
    """The least time that a topic writes to one ledger, whatever its entries, unless it reaches its maximal size."""
    managed_ledger_max_ledger_rollover_time_minutes: int = 240
    """The time after which a topic goes on in a new ledger, whatever is in the old one. 0: never for its age."""
    managed_ledger_inactive_ledger_rollover_time_seconds: int = 0
    """A ledger to which nothing is added for so long, and twice that at most, is closed: it can be trimmed then. 0: never."""
    managed_ledger_max_size_per_ledger_mbytes: int = 2048
    """The size at which a topic goes on in a new ledger."""
    managed_ledger_cursor_max_entries_per_ledger: int = 50_000
    """Entries after which a cursor goes on in a new ledger."""
    managed_ledger_cursor_rollover_time_in_seconds: int = 14_400
    """The time after which a cursor goes on in a new ledger."""
    managed_ledger_cursor_position_flush_seconds: int = 60
    """Interval at which cursors that have moved, and were held back by the rate below, are stored."""
    managed_ledger_default_mark_delete_rate_limit: float = 1.0
    """Times a second that a moving cursor is stored; acknowledgements since the last time come again after a crash."""
    managed_ledger_persist_individual_ack_as_long_array: bool = True
    """Holes between acknowledgements are stored as bitmaps, which are smaller than ranges."""
    managed_ledger_max_unacked_ranges_to_persist_in_metadata_store: int = 1000
    """Holes of a cursor that are stored in metadata when its ledger cannot be written; more are stored in ledgers alone."""
    managed_ledger_max_unacked_ranges_to_persist: int = 10_000
    """Beyond it holes are written as segments, where Apache drops them (`docs/cursor-segments.md`)."""
    managed_cursor_hole_cache_size_mb: int = 32
    """Segments of holes that stay in memory, of all cursors together. Not a key of Apache's."""
    managed_ledger_cache_size_mb: int = 64
    """Memory for entries that were just published or read ahead, of all topics together."""
    managed_ledger_cache_eviction_time_threshold_millis: int = 1000
    """Time for which an entry that is not read stays in the cache."""
    managed_ledger_cache_eviction_watermark: float = 0.9
    """Share of its size that a full cache keeps after eviction."""
    managed_ledger_cursor_backlogged_threshold: int = 1000
    """Entries: a reader farther behind is no reason to keep what is appended in the cache."""
    managed_ledger_max_reads_in_flight_size_in_mb: int = 32
    """On their way from ledgers into memory, over all topics; more wait. 0 (Apache's default): no bound."""
    managed_ledger_max_reads_in_flight_permits_acquire_timeout_millis: int = 60_000
    """Time for which a read waits for room under the bound above before it fails and is tried again."""
    managed_ledger_max_reads_in_flight_permits_acquire_queue_size: int = 50_000
    """Reads that may wait for that room; one more fails, and is tried again."""
    managed_ledger_info_compression_type: str = "NONE"
    """Compression of the list of a topic's ledgers in metadata: NONE, LZ4, ZLIB, ZSTD or SNAPPY."""
    managed_ledger_info_compression_threshold_in_bytes: int = THRESHOLD_BYTES
    """The size from which on that list is compressed."""
    managed_cursor_info_compression_type: str = "NONE"
    """Compression of a cursor's state in metadata: NONE, LZ4, ZLIB, ZSTD or SNAPPY."""
    managed_cursor_info_compression_threshold_in_bytes: int = THRESHOLD_BYTES
    """The size from which on that is compressed."""
    broker_entry_metadata_interceptors: tuple[str, ...] = ()
    """org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor and AppendIndexMetadataInterceptor: the
    broker's time and the message's index are stored in front of each message."""
    auto_skip_non_recoverable_data: bool = False
    """Entries and ledgers that no bookie has any more are passed over, and are lost; else reading stops in front of them."""
    managed_ledger_force_recovery: bool = False
    """A topic is opened even where ledgers of it or of its cursors cannot be read; what was in them is lost."""
    default_retention_time_in_minutes: int = 0
    """Minutes for which acknowledged messages are kept, where no policy says otherwise. 0: not at all; -1: for ever."""
    default_retention_size_in_mb: int = 0
    """Megabytes of acknowledged messages that a topic keeps, where no policy says otherwise. 0: nothing; -1: everything."""

    def __post_init__(self) -> None:
        for name in ("managed_ledger_max_entries_per_ledger", "managed_ledger_max_size_per_ledger_mbytes",
                     "managed_ledger_cursor_max_entries_per_ledger", "managed_ledger_cursor_rollover_time_in_seconds",
                     "managed_ledger_cursor_position_flush_seconds",
                     "managed_ledger_cache_eviction_time_threshold_millis",
                     "managed_ledger_max_reads_in_flight_permits_acquire_timeout_millis"):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"{name.replace('_', '')}: expected at least 1")
        if self.managed_cursor_hole_cache_size_mb < 0:
            raise ValueError(
                f"managedCursorHoleCacheSizeMB: {self.managed_cursor_hole_cache_size_mb} is negative;"
                " expected megabytes, 0 to keep no segments in memory but those in use"
            )
        if self.managed_ledger_default_mark_delete_rate_limit <= 0:
            raise ValueError("managedLedgerDefaultMarkDeleteRateLimit: expected more than 0 marks per second")
        if not 0 < self.managed_ledger_cache_eviction_watermark <= 1:
            raise ValueError("managedLedgerCacheEvictionWatermark: expected more than 0, at most 1")
        minimum, maximum = self.managed_ledger_min_ledger_rollover_time_minutes, self.max_rollover_minutes
        if minimum < 0 or minimum > maximum > 0:
            raise ValueError(
                "managedLedgerMinLedgerRolloverTimeMinutes must not exceed managedLedgerMaxLedgerRolloverTimeMinutes"
            )

        self._check_compressions()
        for name in self.broker_entry_metadata_interceptors:
            if name not in BROKER_ENTRY_METADATA_INTERCEPTORS:
                expected = ", ".join(BROKER_ENTRY_METADATA_INTERCEPTORS)
                raise ValueError(f"brokerEntryMetadataInterceptors: {name} is none of {expected}")

    @property
    def stamps_broker_timestamp(self) -> bool:
        return BROKER_ENTRY_METADATA_INTERCEPTORS[0] in self.broker_entry_metadata_interceptors

    @property
    def stamps_index(self) -> bool:
        return BROKER_ENTRY_METADATA_INTERCEPTORS[1] in self.broker_entry_metadata_interceptors

    def _check_compressions(self) -> None:
        names = (self.managed_ledger_info_compression_type, self.managed_cursor_info_compression_type)
        for key, name in zip(("managedLedgerInfoCompressionType", "managedCursorInfoCompressionType"), names, strict=True):
            if name not in COMPRESSIONS:
                raise ValueError(f"{key}={name}: expected one of {', '.join(COMPRESSIONS)}")

    @property
    def ledger_info_compression(self) -> Compression:
        return Compression(self.managed_ledger_info_compression_type, self.managed_ledger_info_compression_threshold_in_bytes)

    @property
    def cursor_info_compression(self) -> Compression:
        return Compression(self.managed_cursor_info_compression_type, self.managed_cursor_info_compression_threshold_in_bytes)

    @property
    def max_rollover_minutes(self) -> int:
        """0 or less: never because of its age alone."""
        return self.managed_ledger_max_ledger_rollover_time_minutes
