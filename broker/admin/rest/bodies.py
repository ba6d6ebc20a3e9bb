"""Bodies of requests: Apache's JSON objects, as types that msgspec reads, checks and describes. Members are Apache's.

A member that is missing has the value that Java gives it. Unknown members are ignored, as there.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

Int = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Long = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Name = Annotated[str, Meta(min_length=1)]
SubscriptionType = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]


class TenantInfo(Struct, rename="camel"):
    """TenantInfoImpl."""

    admin_roles: list[str] | None = None
    allowed_clusters: list[str] | None = None


class ClusterUrl(Struct, rename="camel", omit_defaults=True):
    """ClusterPolicies.ClusterUrl."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None


class ClusterData(Struct, rename="camel"):
    """ClusterDataImpl, of which null members are not stored."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    proxy_service_url: str | None = None
    proxy_protocol: Literal["SNI"] | None = None
    peer_cluster_names: list[str] | None = None
    authentication_plugin: str | None = None
    authentication_parameters: str | None = None
    broker_client_tls_enabled: bool = False
    tls_allow_insecure_connection: bool = False
    broker_client_tls_enabled_with_key_store: bool = False
    broker_client_tls_trust_store_type: str | None = None
    broker_client_tls_trust_store: str | None = None
    broker_client_tls_trust_store_password: str | None = None
    broker_client_tls_key_store_type: str | None = None
    broker_client_tls_key_store: str | None = None
    broker_client_tls_key_store_password: str | None = None
    broker_client_trust_certs_file_path: str | None = None
    broker_client_certificate_file_path: str | None = None
    broker_client_key_file_path: str | None = None
    broker_client_ssl_factory_plugin: str | None = None
    broker_client_ssl_factory_plugin_params: str | None = None
    listener_name: str | None = None


class BundlesData(Struct, rename="camel"):
    """Bundles of a namespace. A new namespace's `boundaries` count only beside their number."""

    boundaries: list[str] | None = None
    num_bundles: Int = 0


class RetentionPolicies(Struct, rename={"minutes": "retentionTimeInMinutes", "megabytes": "retentionSizeInMB"}):
    """-1 without bound, 0 nothing."""

    minutes: Int = 0
    megabytes: Long = 0


class BacklogQuota(Struct, rename="camel", omit_defaults=True):
    """BacklogQuotaImpl; `limit` is the older name of `limitSize`."""

    policy: Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"] | None = None
    limit_size: Long | None = None
    limit: Long | None = None
    limit_time: Int | None = None


class PublishRate(Struct, rename={"messages": "publishThrottlingRateInMsg", "size_bytes": "publishThrottlingRateInByte"}):
    """A second's; 0 or less: no limit."""

    messages: Int = -1
    size_bytes: Long = -1


_DISPATCH_RATE = {
    "messages": "dispatchThrottlingRateInMsg",
    "size_bytes": "dispatchThrottlingRateInByte",
    "relative": "relativeToPublishRate",
    "period_seconds": "ratePeriodInSecond",
}


class DispatchRate(Struct, rename=_DISPATCH_RATE):
    """DispatchRateImpl."""

    messages: Int = 0
    size_bytes: Long = 0
    relative: bool = False
    period_seconds: Int = 0


class SubscribeRate(
    Struct, rename={"per_consumer": "subscribeThrottlingRatePerConsumer", "period_seconds": "ratePeriodInSecond"}
):
    """Limit of subscribe requests of a consumer in a period."""

    per_consumer: Int = -1
    period_seconds: Int = 30


class AutoTopicCreation(Struct, rename="camel", omit_defaults=True):
    """AutoTopicCreationOverride."""

    allow_auto_topic_creation: bool | None = None
    topic_type: str | None = None
    default_num_partitions: Int | None = None


class AutoSubscriptionCreation(Struct, rename="camel"):
    """AutoSubscriptionCreationOverride."""

    allow_auto_subscription_creation: bool = False


class DelayedDelivery(Struct, rename="camel"):
    """DelayedDeliveryPolicies; of the tick and the longest delay 0 is none."""

    tick_time: Long = 0
    active: bool = False
    max_delivery_delay_in_millis: Long = 0


class InactiveTopics(Struct, rename="camel"):
    """InactiveTopicPolicies."""

    delete_while_inactive: bool = False
    max_inactive_duration_seconds: Int = 0
    inactive_topic_delete_mode: Literal["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"] | None = None


class Persistence(
    Struct,
    rename={
        "ensemble": "bookkeeperEnsemble",
        "write_quorum": "bookkeeperWriteQuorum",
        "ack_quorum": "bookkeeperAckQuorum",
        "mark_delete_rate": "managedLedgerMaxMarkDeleteRate",
    },
):
    """PersistencePolicies."""

    ensemble: Int = 0
    write_quorum: Int = 0
    ack_quorum: Int = 0
    mark_delete_rate: float = 0.0


class BookieAffinity(
    Struct,
    rename={"primary": "bookkeeperAffinityGroupPrimary", "secondary": "bookkeeperAffinityGroupSecondary"},
    omit_defaults=True,
):
    """BookieAffinityGroupData: names of groups, comma separated."""

    primary: str | None = None
    secondary: str | None = None


class EntryFilters(Struct, rename="camel"):
    """Names of filters, comma separated."""

    entry_filter_names: str | None = None


class ResourceQuota(Struct, rename="camel"):
    """Expected needs of a bundle; `memory` in MB. A missing member counts as 0 if others are given."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0
    memory: float = 0.0
    dynamic: bool = True


class BookieInfo(Struct, omit_defaults=True):
    """Place of a bookie."""

    rack: str | None = None
    hostname: str | None = None


class Brokers(Struct):
    """FailureDomainImpl: broker ids, `host:port`."""

    brokers: list[str] = field(default_factory=list)


class ErrorData(Struct):
    """Every refusal."""

    reason: str


def plain(value: object) -> object:
    """Returns the value as JSON has it, without members that are null."""
    found = msgspec.to_builtins(value)
    return {key: each for key, each in found.items() if each is not None} if isinstance(found, dict) else found
