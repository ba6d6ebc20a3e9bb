"""The layout of the events in `__change_events`: Apache's PulsarEvent as its Avro schema has it. Pure data.

Read off the schema that an Apache Pulsar 4.0.8 registers (Schema.AVRO(PulsarEvent)): fields in alphabetical order, as Avro's
reflection writes them, and every field that is no Java primitive nullable.
"""

from collections.abc import Mapping

from .topic_policies_avro import Array, AvroType, Enum, Map, Nullable, Record

_STRING = Nullable("string")
_BOOLEAN, _INT, _LONG = Nullable("boolean"), Nullable("int"), Nullable("long")
_STRINGS = Nullable(Array("string"))

SCHEMA_STRATEGIES = (
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip
INACTIVE_DELETE_MODES = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
QUOTA_POLICIES = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")

_DISPATCH_RATE = Record(
    {
        "dispatchThrottlingRateInByte": "long",
        "dispatchThrottlingRateInMsg": "int",
        "ratePeriodInSecond": "int",
        "relativeToPublishRate": "boolean",
    }
)
_BACKLOG_QUOTA = Record({"limit": "long", "limitSize": _LONG, "limitTime": "int", "policy": Nullable(Enum(QUOTA_POLICIES))})
_INACTIVE_TOPIC_POLICIES = Record(
    {
        "deleteWhileInactive": "boolean",
        "inactiveTopicDeleteMode": Nullable(Enum(INACTIVE_DELETE_MODES)),
        "maxInactiveDurationSeconds": "int",
    }
)
_OFFLOAD_POLICIES = Record(
    {
        "fileSystemProfilePath": _STRING,
        "fileSystemURI": _STRING,
        "gcsManagedLedgerOffloadBucket": _STRING,
        "gcsManagedLedgerOffloadMaxBlockSizeInBytes": _INT,
        "gcsManagedLedgerOffloadReadBufferSizeInBytes": _INT,
        "gcsManagedLedgerOffloadRegion": _STRING,
        "gcsManagedLedgerOffloadServiceAccountKeyFile": _STRING,
        "managedLedgerExtraConfigurations": Nullable(Map("string")),
        "managedLedgerOffloadBucket": _STRING,
        "managedLedgerOffloadDeletionLagInMillis": _LONG,
        "managedLedgerOffloadDriver": _STRING,
        "managedLedgerOffloadMaxBlockSizeInBytes": _INT,
        "managedLedgerOffloadMaxThreads": _INT,
        "managedLedgerOffloadPrefetchRounds": _INT,
        "managedLedgerOffloadReadBufferSizeInBytes": _INT,
        "managedLedgerOffloadReadThreads": _INT,
        "managedLedgerOffloadRegion": _STRING,
        "managedLedgerOffloadServiceEndpoint": _STRING,
        "managedLedgerOffloadThresholdInBytes": _LONG,
        "managedLedgerOffloadThresholdInSeconds": _LONG,
        "managedLedgerOffloadedReadPriority": Nullable(Enum(("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST"))),
        "offloadersDirectory": _STRING,
        "s3ManagedLedgerOffloadBucket": _STRING,
        "s3ManagedLedgerOffloadCredentialId": _STRING,
        "s3ManagedLedgerOffloadCredentialSecret": _STRING,
        "s3ManagedLedgerOffloadMaxBlockSizeInBytes": _INT,
        "s3ManagedLedgerOffloadReadBufferSizeInBytes": _INT,
        "s3ManagedLedgerOffloadRegion": _STRING,
        "s3ManagedLedgerOffloadRole": _STRING,
        "s3ManagedLedgerOffloadRoleSessionName": _STRING,
        "s3ManagedLedgerOffloadServiceEndpoint": _STRING,
    }
)
_PERSISTENCE = Record(
    {
        "bookkeeperAckQuorum": "int",
        "bookkeeperEnsemble": "int",
        "bookkeeperWriteQuorum": "int",
        "managedLedgerMaxMarkDeleteRate": "double",
        "managedLedgerStorageClassName": _STRING,
    }
)
_SUBSCRIPTION_TYPES = Enum(("Exclusive", "Shared", "Failover", "Key_Shared"))

POLICY_FIELDS: Mapping[str, AvroType] = {
    "autoSubscriptionCreationOverride": Nullable(Record({"allowAutoSubscriptionCreation": "boolean"})),
    "backLogQuotaMap": Nullable(Map(_BACKLOG_QUOTA)),
    "compactionThreshold": _LONG,
    "deduplicationEnabled": _BOOLEAN,
    "deduplicationSnapshotIntervalSeconds": _INT,
    "delayedDeliveryEnabled": _BOOLEAN,
    "delayedDeliveryMaxDelayInMillis": _LONG,
    "delayedDeliveryTickTimeMillis": _LONG,
    "dispatchRate": Nullable(_DISPATCH_RATE),
    "dispatcherPauseOnAckStatePersistentEnabled": _BOOLEAN,
    "entryFilters": Nullable(Record({"entryFilterNames": _STRING})),
    "inactiveTopicPolicies": Nullable(_INACTIVE_TOPIC_POLICIES),
    "isGlobal": _BOOLEAN,
    "maxConsumerPerTopic": _INT,
    "maxConsumersPerSubscription": _INT,
    "maxMessageSize": _INT,
    "maxProducerPerTopic": _INT,
    "maxSubscriptionsPerTopic": _INT,
    "maxUnackedMessagesOnConsumer": _INT,
    "maxUnackedMessagesOnSubscription": _INT,
    "messageTTLInSeconds": _INT,
    "offloadPolicies": Nullable(_OFFLOAD_POLICIES),
    "persistence": Nullable(_PERSISTENCE),
    "publishRate": Nullable(Record({"publishThrottlingRateInByte": "long", "publishThrottlingRateInMsg": "int"})),
    "replicationClusters": _STRINGS,
    "replicatorDispatchRate": Nullable(_DISPATCH_RATE),
    "retentionPolicies": Nullable(Record({"retentionSizeInMB": "long", "retentionTimeInMinutes": "int"})),
    "schemaCompatibilityStrategy": Nullable(Enum(SCHEMA_STRATEGIES)),
    "schemaValidationEnforced": _BOOLEAN,
    "shadowTopics": _STRINGS,
    "subscribeRate": Nullable(Record({"ratePeriodInSecond": "int", "subscribeThrottlingRatePerConsumer": "int"})),
    "subscriptionDispatchRate": Nullable(_DISPATCH_RATE),
    "subscriptionPolicies": Nullable(Map(Record({"dispatchRate": Nullable(_DISPATCH_RATE)}))),
    "subscriptionTypesEnabled": Nullable(Array(_SUBSCRIPTION_TYPES)),
}
"""TopicPolicies."""

_TOPIC_POLICIES_EVENT = Record(
    {
        "domain": _STRING,
        "namespace": _STRING,
        "policies": Nullable(Record(POLICY_FIELDS)),
        "tenant": _STRING,
        "topic": _STRING,
    }
)
PULSAR_EVENT = Record(
    {
        "actionType": Nullable(Enum(("INSERT", "DELETE", "UPDATE", "NONE"))),
        "eventType": Nullable(
            Enum(
                (
                    "TOPIC_POLICY",
                    "TRANSACTION_BUFFER_SNAPSHOT",
                    "TRANSACTION_BUFFER_SNAPSHOT_SEGMENTS",
                    "TRANSACTION_BUFFER_SNAPSHOT_INDEXES",
                )
            )
        ),
        "replicateTo": _STRINGS,
        "topicPoliciesEvent": Nullable(_TOPIC_POLICIES_EVENT),
    }
)
