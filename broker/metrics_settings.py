"""MetricsSettings: settings of a broker's /metrics. Keys and defaults are Apache's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Without metrics of topics there are those of each namespace, summed over its topics."""

    expose_topic_level_metrics_in_prometheus: bool = True
    """Metrics have series for each topic; otherwise for each namespace."""
    expose_consumer_level_metrics_in_prometheus: bool = False
    """With metrics of topics only."""
    expose_producer_level_metrics_in_prometheus: bool = False
    """With metrics of topics only."""
    expose_managed_ledger_metrics_in_prometheus: bool = True
    """Metrics of topics' storage are included."""
    expose_managed_cursor_metrics_in_prometheus: bool = False
    """Metrics of each cursor's saves: their number, place and size."""
    expose_precise_backlog_in_prometheus: bool = False
    """The backlog is always precise: both values are the same here."""
    expose_subscription_backlog_size_in_prometheus: bool = False
    """A number of bytes for each subscription."""
    split_topic_and_partition_label_in_prometheus: bool = False
    """`topic` without the partition, and the partition's number in a label `partition` (-1: the topic has none)."""
    metrics_servlet_timeout_ms: int = 30_000
    """A scrape that takes longer is given up with status 503."""

    def __post_init__(self) -> None:
        if self.metrics_servlet_timeout_ms < 1:
            raise ValueError("metricsServletTimeoutMs: expected at least 1 (milliseconds)")
