"""BookieSettings: what bookkeeper.conf says, as far as a bookie reads it. Each field is Apache's key in snake case.

| field | Apache's key | where the default differs, why |
| --- | --- | --- |
| journal_directories | journalDirectories | |
| ledger_directories | ledgerDirectories | |
| journal_max_size_mb | journalMaxSizeMB | 32 (2048): files are recycled, a small set is written again and again |
| journal_pre_alloc_size_mb | journalPreAllocSizeMB | |
| journal_alignment_size | journalAlignmentSize | 4096 (512): whole pages are written, so a recycled one is not read first |
| journal_max_backups | journalMaxBackups | 1 (5): files kept beyond need; here they are the spares to recycle |
| journal_max_group_wait_msec | journalMaxGroupWaitMSec | 1, as Pulsar sets it; only under load (journal/group_commit.py) |
| journal_flush_when_queue_empty | journalFlushWhenQueueEmpty | true (false): a lone publisher waits for no other |
| journal_buffered_writes_threshold | journalBufferedWritesThreshold | |
| journal_io_uring | none: our own journalIoUring | without a thread, where Linux can (docs/adr/0035) |
| journal_sync_data | journalSyncData | false is refused by a log line: an add is acknowledged after fsync, always |
| db_storage_write_cache_max_size_mb | dbStorage_writeCacheMaxSizeMb | 32 (a quarter of direct memory): both tables together |
| db_storage_read_ahead_cache_max_size_mb | dbStorage_readAheadCacheMaxSizeMb | 8 (a quarter of direct memory) |
| db_storage_read_ahead_cache_batch_size | dbStorage_readAheadCacheBatchSize | |
| db_storage_read_ahead_cache_batch_bytes_size | dbStorage_readAheadCacheBatchBytesSize | |
| db_storage_direct_io_entry_logger | dbStorage_directIOEntryLogger | true (false): docs/adr/0015 |
| flush_interval | flushInterval (ms) | 60,000, as Pulsar sets it |
| log_size_limit | logSizeLimit (bytes) | 128 MiB (1 GiB): a file is reclaimed as a whole |
| open_file_limit | openFileLimit | 64 (none): entry logs open for reading |
| max_reads_in_progress_limit | maxReadsInProgressLimit | 64 (none): more wait their turn |
| gc_wait_time | gcWaitTime (ms) | |
| gc_overreplicated_ledger_wait_time | gcOverreplicatedLedgerWaitTime (ms) | 0: never, as Apache |
| is_force_gc_allow_when_no_space | isForceGCAllowWhenNoSpace | |
| disk_check_interval | diskCheckInterval (ms) | |
| disk_usage_threshold | diskUsageThreshold | |
| disk_usage_warn_threshold | diskUsageWarnThreshold | above it major compactions rest |
| disk_usage_lwm_threshold | diskUsageLwmThreshold | 0.90 (= the threshold): some distance, so that the state does not flap |
| min_usable_size_for_high_priority_writes | minUsableSizeForHighPriorityWrites | None: 1.2 logSizeLimit, as Apache |
| read_only_mode_enabled | readOnlyModeEnabled | false: the process ends where it would become read-only |
| force_read_only_bookie | forceReadOnlyBookie | |
| minor_compaction_threshold | minorCompactionThreshold | share of a log that is alive; 0: none |
| minor_compaction_interval | minorCompactionInterval (s) | 0: none |
| major_compaction_threshold | majorCompactionThreshold | as minor |
| major_compaction_interval | majorCompactionInterval (s) | as minor |
| local_scrub_interval | localScrubInterval (s) | 0: none, as Apache |
| local_scrub_rate_limit | localScrubRateLimit | 10 (60): blocks a second, not entries |
| local_consistency_check_on_startup | localConsistencyCheckOnStartup | |
| data_integrity_checking | dataIntegrityChecking | with the next one only: `bookie.start.limbo` |
| data_integrity_stamp_missing_cookies | dataIntegrityStampMissingCookies | |
| compaction_rate_by_bytes | compactionRateByBytes (bytes/s) | the only throttle; 0: none |
| allow_local_reads | none: our own allowLocalReads | |
"""

from dataclasses import dataclass

MEGABYTE = 1 << 20
SECTOR_BYTES = 512
POSITIVE = {
    "journal_max_size_mb": "journalMaxSizeMB",
    "journal_pre_alloc_size_mb": "journalPreAllocSizeMB",
    "db_storage_write_cache_max_size_mb": "dbStorage_writeCacheMaxSizeMb",
    "flush_interval": "flushInterval",
    "log_size_limit": "logSizeLimit",
    "gc_wait_time": "gcWaitTime",
    "disk_check_interval": "diskCheckInterval",
}
OPEN_FILES_MAX = 64
READS_IN_PROGRESS_MAX = 64
"""Limit in place of Apache's 0, which means no limit."""


@dataclass(frozen=True, slots=True)
class BookieSettings:
    """Settings of one bookie; see the table above."""

    journal_directories: tuple[str, ...] = ("data/bookkeeper/journal",)
    """Directories where entries are written and fsynced before they are acknowledged: use the fastest disk."""
    ledger_directories: tuple[str, ...] = ("data/bookkeeper/ledgers",)
    """A ledger is on one journal and one ledger directory for ever: number and order stay as they were at the first start."""
    journal_max_size_mb: int = 32
    """The size of one journal file."""
    journal_pre_alloc_size_mb: int = 16
    """Bytes by which a journal file grows at a time, in MB."""
    journal_alignment_size: int = 4096
    """Writes to the journal are multiples of this number of bytes."""
    journal_max_backups: int = 1
    """Journal files that are kept beyond those that are needed."""
    journal_max_group_wait_msec: int = 1
    """Longest time that an entry waits for others that share its fsync."""
    journal_flush_when_queue_empty: bool = True
    """A journal that has written everything writes the next entry at once. False: it waits for others there, too."""
    journal_buffered_writes_threshold: int = 524_288
    """Bytes that wait for an fsync, at which it is not waited for more."""
    journal_sync_data: bool = True
    """Entries are acknowledged after an fsync. There is no other way here."""
    db_storage_write_cache_max_size_mb: int = 32
    """Memory for entries that are in the journal and not in entry logs yet."""
    db_storage_read_ahead_cache_max_size_mb: int = 8
    """Half of it for what was read ahead, half for the tables of blocks."""
    db_storage_read_ahead_cache_batch_size: int = 100
    """Entries that are read where a reader goes on with fewer. 0 or less: none ahead."""
    db_storage_read_ahead_cache_batch_bytes_size: int = -1
    """Bytes of them, at most. 0 or less: no limit but that of the cache, and of a block."""
    journal_io_uring: bool = True
    """Journal frames are written through io_uring where the system has it, and otherwise by a thread."""
    db_storage_direct_io_entry_logger: bool = True
    """Entry logs are read and written past the page cache of the system."""
    flush_interval: int = 60_000
    """Longest time before entries in memory are written to entry logs."""
    log_size_limit: int = 128 * MEGABYTE
    """The size of one entry log."""
    open_file_limit: int = OPEN_FILES_MAX
    """Entry logs that are open for reading at a time. 0 (BookKeeper's own): as by default."""
    max_reads_in_progress_limit: int = READS_IN_PROGRESS_MAX
    """Reads of entries that are under way at a time; more wait their turn. 0 (BookKeeper's own): as by default."""
    gc_wait_time: int = 900_000
    """Interval between two searches for deleted ledgers, whose room becomes free."""
    gc_overreplicated_ledger_wait_time: int = 86_400_000
    """Between two removals of ledgers whose metadata names other bookies only. 0 or less: never."""
    is_force_gc_allow_when_no_space: bool = False
    """Compaction goes on, and begins at once, when a disk is over its threshold; else it rests then, since it needs room."""
    disk_check_interval: int = 10_000
    """Interval between two looks at the free room of the disks."""
    disk_usage_threshold: float = 0.95
    """The share of a disk above which the bookie takes no more writes."""
    disk_usage_warn_threshold: float = 0.90
    """The share of a disk above which major compactions rest."""
    disk_usage_lwm_threshold: float = 0.90
    """The share of a disk below which a bookie that was full takes writes again."""
    min_usable_size_for_high_priority_writes: int | None = None
    """Bytes that must be free for a recovery's adds to be taken when the disk is full. None: 1.2 times logSizeLimit."""
    read_only_mode_enabled: bool = True
    """false: the process of a bookie ends where it would become read-only."""
    force_read_only_bookie: bool = False
    """The bookie starts without taking writes, such as before it is removed."""
    minor_compaction_threshold: float = 0.2
    """Entry logs of which less is alive are copied; of 0 or less none are."""
    minor_compaction_interval: int = 3600
    """Seconds; looked at every gcWaitTime. 0 or less: never."""
    major_compaction_threshold: float = 0.8
    """Entry logs of which less is alive are copied by the rarer compaction; of 0 or less none are."""
    major_compaction_interval: int = 86_400
    """Seconds between two of the rarer compactions. 0 or less: never."""
    compaction_rate_by_bytes: int = 1_000_000
    """Bytes a second that a compaction reads, whatever isThrottleByBytes says. 0 or less: as fast as it can."""
    local_scrub_interval: int = 0
    """Seconds between two comparisons of what is stored with its checksums. 0 or less: never."""
    local_scrub_rate_limit: float = 10.0
    """Blocks (of up to 2 MB) a second. 0 or less: as fast as it can."""
    data_integrity_checking: bool = False
    """With dataIntegrityStampMissingCookies: a bookie that lost its journal, or everything, starts and tells what it lacks."""
    data_integrity_stamp_missing_cookies: bool = False
    """Such a bookie marks its directories as its own again."""
    local_consistency_check_on_startup: bool = False
    """Read everything that is stored before the start, and do not start when something is damaged."""
    allow_local_reads: bool = True
    """Clients on the same machine that may read the bookie's entries are handed the files with them (docs/adr/0030)."""

    def __post_init__(self) -> None:
        self._check_directories()
        if self.journal_alignment_size < SECTOR_BYTES or self.journal_alignment_size % SECTOR_BYTES:
            raise ValueError(f"journalAlignmentSize must be a multiple of {SECTOR_BYTES}")
        if not 0 < self.disk_usage_lwm_threshold <= self.disk_usage_threshold <= 1:
            raise ValueError("0 < diskUsageLwmThreshold <= diskUsageThreshold <= 1 must hold")
        if not 0 < self.disk_usage_warn_threshold <= 1:
            raise ValueError("0 < diskUsageWarnThreshold <= 1 must hold")
        self._check_compaction()
        self._check_positive()

    def _check_directories(self) -> None:
        for key, directories in (("journal", self.journal_directories), ("ledger", self.ledger_directories)):
            if not directories:
                raise ValueError(f"{key}Directories: expected at least one directory")
            if len(set(directories)) != len(directories):
                raise ValueError(f"{key}Directories: {','.join(directories)} names a directory twice")

    def _check_compaction(self) -> None:
        minor, major = self.minor_compaction_threshold, self.major_compaction_threshold
        if max(minor, major) >= 1:
            raise ValueError("minorCompactionThreshold and majorCompactionThreshold must be less than 1")
        if minor > 0 and major > 0 and minor >= major:
            raise ValueError(f"minorCompactionThreshold={minor} must be less than majorCompactionThreshold={major}")

    def _check_positive(self) -> None:
        for name, key in POSITIVE.items():
            if getattr(self, name) < 1:
                raise ValueError(f"{key}={getattr(self, name)}: expected at least 1")
        if min(self.open_file_limit, self.max_reads_in_progress_limit) < 0:
            raise ValueError("openFileLimit, maxReadsInProgressLimit: expected 0 (as by default) or more")

    @property
    def open_files_max(self) -> int:
        return self.open_file_limit or OPEN_FILES_MAX

    @property
    def reads_in_progress_max(self) -> int:
        return self.max_reads_in_progress_limit or READS_IN_PROGRESS_MAX

    @property
    def journal_directory(self) -> str:
        return self.journal_directories[0]

    @property
    def ledger_directory(self) -> str:
        return self.ledger_directories[0]

    @property
    def allows_limbo(self) -> bool:
        """Whether the bookie starts although its journal or entries are lost."""
        return self.data_integrity_checking and self.data_integrity_stamp_missing_cookies

    @property
    def high_priority_bytes_min(self) -> int:
        """Free bytes below which not even a recovery adds."""
        given = self.min_usable_size_for_high_priority_writes
        return int(1.2 * self.log_size_limit) if given is None else given

    @property
    def table_bytes_max(self) -> int:
        """Largest size of one of the two memtables."""
        return self.db_storage_write_cache_max_size_mb * MEGABYTE // 2
