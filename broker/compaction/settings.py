"""Settings of topic compaction, under Apache's key names. Pure data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Defaults are Apache's."""

    broker_service_compaction_threshold_in_bytes: int = 0
    """A topic with more that is not compacted is; 0: only on request. Policies of namespace and topic come before it."""
    broker_service_compaction_monitor_interval_in_seconds: int = 60
    topic_compaction_retain_null_key: bool = False
    """Messages without a key stay (PIP-318)."""

    def __post_init__(self) -> None:
        if self.broker_service_compaction_threshold_in_bytes < 0:
            raise ValueError("brokerServiceCompactionThresholdInBytes: expected 0 (only on request) or more")
        if self.broker_service_compaction_monitor_interval_in_seconds < 1:
            raise ValueError("brokerServiceCompactionMonitorIntervalInSeconds must be at least 1")
