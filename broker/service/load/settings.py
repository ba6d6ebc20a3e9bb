"""LoadSettings: settings of the load manager. Keys and defaults are Apache's."""

from dataclasses import dataclass

from .shedding import ThresholdRule, TransferRule
from .splitting import ALGORITHMS, SPECIFIED, SplitRule

MEGABYTE = 1 << 20
THRESHOLD_SHEDDER = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
TRANSFER_SHEDDER = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"
STRATEGIES = (THRESHOLD_SHEDDER, TRANSFER_SHEDDER)
OTHER_STRATEGIES = tuple(
    f"org.apache.pulsar.broker.loadbalance.impl.{name}" for name in ("OverloadShedder", "UniformLoadShedder", "AvgShedder")
)
"""Apache's other ones, the first of them the default until 2.9: ThresholdShedder takes their place."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """Percentages are 0 to 100; of the limits of a bundle 0 means none."""

    load_balancer_enabled: bool = True
    """false: bundles are dealt by hash, nothing is reported, moved or split by itself."""
    load_balancer_report_update_threshold_percentage: int = 10
    """A change of as much is reported at once (that is, after the minimum interval)."""
    load_balancer_report_update_min_interval_millis: int = 5000
    """The least time between two reports of a broker's load."""
    load_balancer_report_update_max_interval_minutes: int = 15
    """The longest time between two reports."""
    load_balancer_broker_overloaded_threshold_percentage: int = 85
    """A broker with a resource used beyond this gets no bundles as long as another broker is below."""
    load_balancer_shedding_enabled: bool = True
    """Bundles are moved away from brokers that are used more than others."""
    load_balancer_load_shedding_strategy: str = THRESHOLD_SHEDDER
    """The leader's choice of the bundles that leave an overloaded broker: ThresholdShedder or TransferShedder, Apache's
    class names.
    """
    load_balancer_shedding_interval_minutes: int = 1
    """Time between two looks of the leader for such brokers."""
    load_balancer_shedding_grace_period_minutes: int = 30
    """A bundle that was moved stays as long where it is."""
    load_balancer_broker_threshold_shedder_percentage: int = 10
    """A broker whose usage is so far above the average gives up bundles."""
    load_balancer_history_resource_percentage: float = 0.9
    """Share of the past in the usage that is compared."""
    load_balancer_bundle_unload_min_throughput_threshold: float = 10.0
    """MB per second below which a surplus is not worth a move."""
    load_balancer_broker_load_target_std: float = 0.25
    """TransferShedder: standard deviation of the brokers' usages that is borne."""
    load_balancer_max_number_of_broker_shedding_per_cycle: int = 3
    """TransferShedder: bundles that are moved in a round."""
    load_balancer_auto_bundle_split_enabled: bool = True
    """Bundles that are over one of the limits below are split."""
    load_balancer_auto_unload_split_bundles_enabled: bool = True
    """The parts of a split bundle are dealt anew, and not served where the whole was."""
    load_balancer_namespace_bundle_max_topics: int = 1000
    """Topics of one bundle, above which it is split."""
    load_balancer_namespace_bundle_max_sessions: int = 1000
    """Producers and consumers of one bundle, above which it is split."""
    load_balancer_namespace_bundle_max_msg_rate: int = 30_000
    """Messages a second in and out of one bundle, above which it is split."""
    load_balancer_namespace_bundle_max_bandwidth_mbytes: int = 100
    """Megabytes a second in and out of one bundle, above which it is split."""
    load_balancer_namespace_maximum_bundles: int = 128
    """Bundles of one namespace, beyond which none is split by itself."""
    load_balancer_override_broker_nic_speed_gbps: float | None = None
    """Speed of the machine's network; null: as the system says, and no limit where it says nothing."""
    failure_domains_enabled: bool = False
    """Namespaces of one anti-affinity group are spread over failure domains, and not over brokers alone."""
    load_balancer_resource_quota_update_interval_minutes: int = 15
    """Time between two writes of a bundle's history for its next owner, beside the one at its release."""
    supported_namespace_bundle_split_algorithms: tuple[str, ...] = (*ALGORITHMS, SPECIFIED)
    """Ways of splitting that may be asked for."""
    default_namespace_bundle_split_algorithm: str = "range_equally_divide"
    """The algorithm of a split that names none."""

    def __post_init__(self) -> None:
        known = (*ALGORITHMS, SPECIFIED)
        unknown = [name for name in self.supported_namespace_bundle_split_algorithms if name not in known]
        if unknown:
            raise ValueError(f"supportedNamespaceBundleSplitAlgorithms: no {unknown[0]}; there are {', '.join(known)}")
        if self.default_namespace_bundle_split_algorithm not in self.supported_namespace_bundle_split_algorithms:
            raise ValueError("defaultNamespaceBundleSplitAlgorithm must be one of supportedNamespaceBundleSplitAlgorithms")
        if self.load_balancer_load_shedding_strategy not in (*STRATEGIES, *OTHER_STRATEGIES):
            raise ValueError(f"loadBalancerLoadSheddingStrategy: expected one of {', '.join(STRATEGIES)}")
        if self.load_balancer_report_update_min_interval_millis < 100 or self.load_balancer_shedding_interval_minutes < 1:
            raise ValueError("loadBalancerReportUpdateMinIntervalMillis: at least 100, loadBalancerSheddingIntervalMinutes: 1")
        if not 0 <= self.load_balancer_history_resource_percentage < 1:
            raise ValueError("loadBalancerHistoryResourcePercentage: from 0 up to, and without, 1")

    @property
    def split_rule(self) -> SplitRule:
        return SplitRule(
            self.load_balancer_namespace_bundle_max_topics,
            self.load_balancer_namespace_bundle_max_sessions,
            self.load_balancer_namespace_bundle_max_msg_rate,
            self.load_balancer_namespace_bundle_max_bandwidth_mbytes,
            self.load_balancer_namespace_maximum_bundles,
        )

    @property
    def threshold_rule(self) -> ThresholdRule:
        throughput = self.load_balancer_bundle_unload_min_throughput_threshold * MEGABYTE
        return ThresholdRule(self.load_balancer_broker_threshold_shedder_percentage / 100, throughput)

    @property
    def transfer_rule(self) -> TransferRule:
        return TransferRule(
            self.load_balancer_broker_load_target_std, self.load_balancer_max_number_of_broker_shedding_per_cycle
        )
