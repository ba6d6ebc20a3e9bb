"""RepairSettings: how lost bookies are noticed and ledgers copied. Keys and defaults are Apache's (bookkeeper.conf)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepairSettings:
    """Settings of an auditor and a replication worker. Intervals of 0: never."""

    auto_recovery_daemon_enabled: bool = True
    """A bookie's process repairs ledgers too: an auditor and a replication worker run in it."""
    auditor_periodic_bookie_check_interval: int = 86_400
    """Seconds between two looks for ledgers that name a bookie that is not there, beside those after a change."""
    auditor_periodic_check_interval: int = 604_800
    """Seconds between two checks of all ledgers at the bookies themselves."""
    auditor_periodic_placement_policy_check_interval: int = 0
    """Seconds between two counts of the segments whose copies share a rack though they need not."""
    auditor_ledger_verification_percentage: int = 0
    """Percentage of a segment's entries that a check of a ledger reads at each bookie, beside the first and the last."""
    auditor_max_number_of_concurrent_open_ledger_operations: int = 500
    """Ledgers that are looked at side by side."""
    lost_bookie_recovery_delay: int = 0
    """Seconds that one lost bookie may take to come back; when two are lost nobody waits. What the cluster's metadata says
    counts for more (`lostbookierecoverydelay` of the shell)."""
    open_ledger_rereplication_grace_period: int = 30_000
    """Milliseconds in which the writer of an open ledger may replace a lost bookie itself; then the ledger is closed."""
    lock_release_of_failed_ledger_grace_period: int = 300_000
    """Milliseconds, at most, before a ledger that could not be repaired is tried again."""
    rw_rereplicate_backoff_ms: int = 5_000
    """After a failure of the metadata."""
    replication_rate_by_bytes: int = -1
    """Bytes that a worker copies in a second. Not above 0: no limit."""
    rereplication_entry_batch_size: int = 100
    """Entries that are read and written together."""
    store_system_time_as_ledger_underreplicated_mark_time: bool = True
    """A ledger that lacks copies is marked with the time since when it does."""
    min_num_racks_per_write_quorum: int = 2
    """Racks per write quorum, as `bookkeeperClientMinNumRacksPerWriteQuorum`, for the bookies that take the copies."""
    enforce_min_num_racks_per_write_quorum: bool = False
    """A copy is not made where that would leave an entry in fewer racks."""

    def __post_init__(self) -> None:
        if not 0 <= self.auditor_ledger_verification_percentage <= 100:
            raise ValueError("auditorLedgerVerificationPercentage: expected 0 to 100")
        if self.rereplication_entry_batch_size < 1:
            raise ValueError("rereplicationEntryBatchSize: expected at least 1")
        if self.auditor_max_number_of_concurrent_open_ledger_operations < 1:
            raise ValueError("auditorMaxNumberOfConcurrentOpenLedgerOperations: expected at least 1")
        for key, value in (
            ("auditorPeriodicBookieCheckInterval", self.auditor_periodic_bookie_check_interval),
            ("auditorPeriodicCheckInterval", self.auditor_periodic_check_interval),
            ("auditorPeriodicPlacementPolicyCheckInterval", self.auditor_periodic_placement_policy_check_interval),
            ("lostBookieRecoveryDelay", self.lost_bookie_recovery_delay),
            ("openLedgerRereplicationGracePeriod", self.open_ledger_rereplication_grace_period),
            ("lockReleaseOfFailedLedgerGracePeriod", self.lock_release_of_failed_ledger_grace_period),
            ("rwRereplicateBackoffMs", self.rw_rereplicate_backoff_ms),
        ):
            if value < 0:
                raise ValueError(f"{key}: expected 0 or more")
