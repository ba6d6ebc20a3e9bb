"""RepairCounters: what an auditor and a replication worker have done, under Apache's names (ReplicationStats)."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class RepairCounters:
    """Counters that only grow. A field `auditor_...` or `replication_worker_...` is the counter of that name in capitals."""

    auditor_election_attempts: int = 0
    auditor_num_bookie_audits_delayed: int = 0
    auditor_num_delayed_bookie_audits_delayes_cancelled: int = 0
    auditor_num_under_replicated_ledgers: int = 0
    """Marks written."""
    auditor_num_ledgers_checked: int = 0
    auditor_num_fragments_per_ledger: int = 0
    """Summed up."""
    auditor_num_ledgers_not_adhering_to_placement_policy: int = 0
    """Number at the last look, not a sum."""
    replication_worker_num_full_or_partial_ledgers_replicated: int = 0
    replication_worker_num_entries_read: int = 0
    replication_worker_num_bytes_read: int = 0
    replication_worker_num_entries_written: int = 0
    replication_worker_num_bytes_written: int = 0
    replication_worker_num_entries_unable_to_read_for_replication: int = 0
    replication_worker_num_defer_ledger_lock_release_of_failed_ledger: int = 0

    def values(self) -> Mapping[str, int]:
        """Values by Apache's name, such as `auditor_NUM_UNDER_REPLICATED_LEDGERS`."""
        named = {}
        for field in dataclasses.fields(self):
            scope = next(scope for scope in ("auditor_", "replication_worker_") if field.name.startswith(scope))
            named[scope + field.name.removeprefix(scope).upper()] = getattr(self, field.name)
        return named
