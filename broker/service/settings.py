"""BrokerSettings: settings of the broker service. Keys are Apache's."""

from dataclasses import dataclass

from ..policies.policies import AutoTopicCreation
from ..schema.values import Strategy

_STRATEGIES = tuple(strategy.value for strategy in Strategy)
_TOPIC_TYPES = ("non-partitioned", "partitioned")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Apache's defaults. 0 means no limit where the name begins with `max`."""

    cluster_name: str = "standalone"
    """The cluster that this broker belongs to, as its namespaces name it."""
    advertised_listeners: tuple[str, ...] = ()
    """`name:pulsar://host:port`; several of one name are its plain and its TLS address."""
    allow_auto_topic_creation: bool = True
    """A producer or consumer of a topic that is not there makes it."""
    allow_auto_topic_creation_type: str = "non-partitioned"
    """Kind of topic that is made then: non-partitioned, or partitioned."""
    default_num_partitions: int = 1
    """The partitions of a partitioned topic that is made so."""
    allow_auto_subscription_creation: bool = True
    """A consumer of a subscription that is not there makes it."""
    default_number_of_namespace_bundles: int = 4
    """Bundles of a new namespace, which are dealt to brokers."""
    max_topics_per_namespace: int = 0
    """Topics that one namespace may have, system topics apart; each partition counts."""
    enable_persistent_topics: bool = True
    """Requests for topics of a kind that is not served are refused."""
    enable_non_persistent_topics: bool = True
    """False: a topic that is not persistent is refused."""
    max_num_partitions_per_partitioned_topic: int = 0
    """Partitions that one topic may have."""
    max_concurrent_lookup_request: int = 50_000
    """Lookups and questions for partitions under way; one more is refused, and the client asks again."""
    max_concurrent_topic_load_request: int = 5000
    """Topics that are opened at the same time; more wait."""
    topic_load_timeout_seconds: int = 60
    """Time to open a topic, after which its client gets a failure."""
    broker_delete_inactive_topics_frequency_seconds: int = 60
    """Time between two looks for inactive topics; their policies say which are deleted, and when."""
    broker_delete_inactive_partitioned_topic_metadata_enabled: bool = False
    """A partitioned topic whose last partition was deleted as unused is deleted, too."""
    retention_check_interval_in_seconds: int = 120
    """Time between two looks for ledgers that nothing keeps any more."""
    message_expiry_check_interval_in_minutes: int = 5
    """Time between two looks for messages that are older than their topic's time to live."""
    subscription_expiry_check_interval_in_minutes: int = 5
    """Time between two looks for subscriptions unused for subscriptionExpirationTimeMinutes."""
    broker_service_compaction_monitor_interval_in_seconds: int = 60
    """Time between two looks for topics that are to be compacted."""
    backlog_quota_check_enabled: bool = True
    """Backlogs are compared with their quotas; else quotas mean nothing."""
    backlog_quota_check_interval_in_seconds: int = 60
    """Time between two comparisons of backlogs with their quotas."""
    enable_broker_side_subscription_pattern_evaluation: bool = True
    """Patterns of topic names are matched here; else the client gets all names and matches them."""
    subscription_pattern_max_length: int = 50
    """Characters that such a pattern may have."""
    enable_broker_topic_list_watcher: bool = True
    """Clients that subscribe to a pattern are notified of new and deleted topics; otherwise they ask from time to time."""
    is_schema_validation_enforced: bool = False
    """Producers without a schema may not publish to a topic that has one."""
    schema_compatibility_strategy: str = Strategy.FULL
    """Strategy by which a topic accepts a new schema, where no policy says otherwise; UNDEFINED is FULL."""
    system_topic_schema_compatibility_strategy: str = Strategy.ALWAYS_COMPATIBLE
    """The same for topics of the brokers' own."""
    is_allow_auto_update_schema_enabled: bool = True
    """False: only an operator makes new versions."""
    system_topic_enabled: bool = True
    """False: brokers keep nothing in topics of their own. Topics have no policies then, and there are no transactions."""
    topic_level_policies_enabled: bool = True
    """False: policies of topics are refused, and those that are stored are not read."""
    max_tenants: int = 0
    """Tenants that the cluster may have."""
    max_namespaces_per_tenant: int = 0
    """Namespaces that one tenant may have."""
    force_delete_tenant_allowed: bool = False
    """A tenant may be deleted with all its namespaces."""
    force_delete_namespace_allowed: bool = False
    """A namespace may be deleted with all its topics."""
    status_file_path: str | None = None
    """`/status.html` answers OK only while this file exists, so that a load balancer can be made to leave. None: always."""

    def __post_init__(self) -> None:
        for strategy in (self.schema_compatibility_strategy, self.system_topic_schema_compatibility_strategy):
            if strategy not in _STRATEGIES:
                raise ValueError(f"schemaCompatibilityStrategy: expected one of {', '.join(_STRATEGIES)}")
        if self.allow_auto_topic_creation_type not in _TOPIC_TYPES:
            raise ValueError(f"allowAutoTopicCreationType: expected one of {', '.join(_TOPIC_TYPES)}")
        if self.default_num_partitions < (1 if self.allow_auto_topic_creation_type == "partitioned" else 0):
            raise ValueError(
                "defaultNumPartitions: expected at least 1 where allowAutoTopicCreationType is partitioned, else 0"
            )
        if min(self.broker_delete_inactive_topics_frequency_seconds, self.retention_check_interval_in_seconds) < 1:
            raise ValueError("brokerDeleteInactiveTopicsFrequencySeconds, retentionCheckIntervalInSeconds: at least 1")
        if self.broker_service_compaction_monitor_interval_in_seconds < 1:
            raise ValueError("brokerServiceCompactionMonitorIntervalInSeconds must be at least 1")
        if self.subscription_expiry_check_interval_in_minutes < 1:
            raise ValueError("subscriptionExpiryCheckIntervalInMinutes: at least 1")
        if min(self.message_expiry_check_interval_in_minutes, self.backlog_quota_check_interval_in_seconds) < 1:
            raise ValueError("messageExpiryCheckIntervalInMinutes, backlogQuotaCheckIntervalInSeconds: at least 1")

    @property
    def has_topic_policies(self) -> bool:
        """They are kept in system topics (isSystemTopicAndTopicLevelPoliciesEnabled)."""
        return self.topic_level_policies_enabled and self.system_topic_enabled

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        partitions = self.default_num_partitions if self.allow_auto_topic_creation_type == "partitioned" else 0
        return AutoTopicCreation(self.allow_auto_topic_creation, partitions)
