"""Settings that the plans draw, with their values, and settings that no plan draws, with the reason. Data; runs nothing.

Values are small enough that the branch behind a setting is reached within the seconds of a run: a group commit that is due by
its size, a ledger that is full after five entries, a bucket of ten delayed messages. `draw` picks a few of them for a seed; all
others keep what the plan or the product says. Tables of one scenario each stand after them (`ELSEWHERE`). A setting in no table
fails a test.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence

from simulation.clients.consumer import ConsumerShape

BOOKIE: Mapping[str, Sequence[str]] = {
    "journalMaxSizeMB": ("1", "16"),
    "journalPreAllocSizeMB": ("1", "4"),
    "journalAlignmentSize": ("512", "4096"),
    "journalMaxBackups": ("0", "2"),
    "journalIoUring": ("true", "false"),
    "journalMaxGroupWaitMSec": ("0", "20", "200"),
    "journalBufferedWritesThreshold": ("1", "4096", "524288"),
    "dbStorage_writeCacheMaxSizeMb": ("1", "2"),
    "dbStorage_readAheadCacheMaxSizeMb": ("0", "1"),
    "dbStorage_readAheadCacheBatchSize": ("1", "7"),
    "dbStorage_readAheadCacheBatchBytesSize": ("100", "5000"),
    "dbStorage_directIOEntryLogger": ("true", "false"),
    "flushInterval": ("50", "500"),
    "logSizeLimit": ("20000", "131072"),
    "openFileLimit": ("1", "3"),
    "maxReadsInProgressLimit": ("1", "2"),
    "gcWaitTime": ("700", "3000"),
    "gcOverreplicatedLedgerWaitTime": ("1000", "4000"),
    "isForceGCAllowWhenNoSpace": ("true", "false"),
    "diskCheckInterval": ("200", "1000"),
    "minorCompactionThreshold": ("0.4", "0.7"),
    "minorCompactionInterval": ("1", "3"),
    "majorCompactionThreshold": ("0.9", "0.95"),
    "majorCompactionInterval": ("2", "5"),
    "compactionRateByBytes": ("1000", "100000"),
    "localScrubInterval": ("1", "3"),
    "localScrubRateLimit": ("5", "1000"),
    "dataIntegrityChecking": ("true", "false"),
    "localConsistencyCheckOnStartup": ("true", "false"),
    "allowLocalReads": ("true", "false"),
}  # fmt: skip
BROKER: Mapping[str, Sequence[str]] = {
    # Ledgers
    "managedLedgerDigestType": ("CRC32C", "CRC32", "DUMMY", "MAC"),
    "managedLedgerPassword": ("secret",),
    "managedLedgerAddEntryTimeoutSeconds": ("1", "5"),
    "managedLedgerReadEntryTimeoutSeconds": ("1", "5"),
    "bookkeeper_addEntryQuorumTimeoutSec": ("5",),
    "bookkeeperExplicitLacIntervalInMills": ("100", "1000"),
    "bookkeeperEnableStickyReads": ("true", "false"),
    "bookkeeperClientSpeculativeReadTimeoutInMillis": ("5", "100"),
    "bookkeeperClientReorderReadSequenceEnabled": ("true", "false"),
    "bookkeeperClientHealthCheckEnabled": ("true", "false"),
    "bookkeeper_delayEnsembleChange": ("true", "false"),
    # Managed ledgers
    "managedLedgerMaxEntriesPerLedger": ("1", "3", "10"),
    "managedLedgerMinLedgerRolloverTimeMinutes": ("0", "1"),
    "managedLedgerMaxLedgerRolloverTimeMinutes": ("1",),
    "managedLedgerInactiveLedgerRolloverTimeSeconds": ("1", "2"),
    "managedLedgerMaxSizePerLedgerMbytes": ("1",),
    "managedLedgerCursorMaxEntriesPerLedger": ("1", "4"),
    "managedLedgerCursorRolloverTimeInSeconds": ("1", "3"),
    "managedLedgerCursorPositionFlushSeconds": ("1", "3"),
    "managedLedgerDefaultMarkDeleteRateLimit": ("0.5", "1000"),
    "managedLedgerPersistIndividualAckAsLongArray": ("true", "false"),
    "managedLedgerMaxUnackedRangesToPersistInMetadataStore": ("0", "2"),
    "managedLedgerMaxUnackedRangesToPersist": ("3", "10"),
    "managedCursorHoleCacheSizeMB": ("1",),
    "managedLedgerCacheSizeMB": ("0", "1"),
    "managedLedgerCacheEvictionTimeThresholdMillis": ("1", "100"),
    "managedLedgerCacheEvictionWatermark": ("0.1", "0.5"),
    "managedLedgerCursorBackloggedThreshold": ("1", "10"),
    "managedLedgerMaxReadsInFlightSizeInMB": ("1",),
    "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis": ("100", "2000"),
    "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize": ("5", "100"),
    "managedLedgerInfoCompressionType": ("LZ4", "ZSTD", "SNAPPY", "ZLIB"),
    "managedLedgerInfoCompressionThresholdInBytes": ("0", "100"),
    "managedCursorInfoCompressionType": ("LZ4", "ZSTD", "SNAPPY", "ZLIB"),
    "managedCursorInfoCompressionThresholdInBytes": ("0", "50"),
    "brokerEntryMetadataInterceptors": (
        "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
        "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
    ),
    "defaultRetentionTimeInMinutes": ("1", "-1"),
    "defaultRetentionSizeInMB": ("1", "-1"),
    # Topics
    "maxProducersPerTopic": ("50",),
    "maxSameAddressProducersPerTopic": ("50",),
    "maxSubscriptionsPerTopic": ("50",),
    "maxConsumersPerTopic": ("100",),
    "maxSameAddressConsumersPerTopic": ("100",),
    "maxConsumersPerSubscription": ("50",),
    "maxUnackedMessagesPerBroker": ("60",),
    "acknowledgmentAtBatchIndexLevelEnabled": ("true", "false"),
    "statsUpdateFrequencyInSecs": ("1", "3"),
    "backlogQuotaDefaultLimitBytes": ("100000000",),
    "backlogQuotaDefaultLimitSecond": ("1800000000",),  # publish times of simulated clients begin in 1970: none is too old
    "preciseTimeBasedBacklogQuotaCheck": ("true", "false"),
    "brokerPublisherThrottlingMaxMessageRate": ("50", "1000"),
    "brokerPublisherThrottlingMaxByteRate": ("20000", "1000000"),
    "maxPublishRatePerTopicInMessages": ("40", "1000"),
    "maxPublishRatePerTopicInBytes": ("20000", "1000000"),
    "dispatchThrottlingRateInMsg": ("100", "1000"),
    "dispatchThrottlingRateInByte": ("100000", "1000000"),
    "dispatchThrottlingRatePerTopicInMsg": ("100", "1000"),
    "dispatchThrottlingRatePerTopicInByte": ("100000", "1000000"),
    "dispatchThrottlingRatePerSubscriptionInMsg": ("50", "1000"),
    "dispatchThrottlingRatePerSubscriptionInByte": ("50000", "1000000"),
    "dispatchThrottlingRateRelativeToPublishRate": ("true", "false"),
    "dispatchThrottlingOnBatchMessageEnabled": ("true", "false"),
    "delayedDeliveryTickTimeMillis": ("10", "100"),
    "subscribeThrottlingRatePerConsumer": ("5", "50"),
    "subscribeRatePeriodPerConsumerInSecond": ("1", "2"),
    "brokerDeduplicationEnabled": ("true", "false"),
    "brokerDeduplicationMaxNumberOfProducers": ("4",),
    "brokerDeduplicationEntriesInterval": ("1", "7"),
    "brokerDeduplicationSnapshotIntervalSeconds": ("1", "3"),
    "brokerDeduplicationSnapshotFrequencyInSeconds": ("1", "2"),
    "subscriptionBacklogScanMaxTimeMs": ("1", "100"),
    "subscriptionBacklogScanMaxEntries": ("1", "10"),
    "transactionCoordinatorEnabled": ("true", "false"),
    "transactionBufferSnapshotMaxTransactionCount": ("1", "3"),
    "transactionBufferSnapshotMinTimeInMillis": ("50", "1000"),
    "transactionBufferSegmentedSnapshotEnabled": ("true", "false"),
    "transactionBufferSnapshotSegmentSize": ("200", "2000"),
    "brokerDeleteInactiveTopicsMode": ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
    # Subscriptions
    "dispatcherMaxReadBatchSize": ("1", "3"),
    "dispatcherMaxReadSizeBytes": ("1", "500"),
    "dispatcherMaxRoundRobinBatchSize": ("1", "2"),
    "dispatcherReadFailureBackoffInitialTimeInMs": ("10", "200"),
    "dispatcherReadFailureBackoffMaxTimeInMs": ("100", "1000"),
    "maxUnackedMessagesPerConsumer": ("3", "20"),
    "maxUnackedMessagesPerSubscription": ("5", "40"),
    "delayedDeliveryMinIndexCountPerBucket": ("2", "10"),
    "delayedDeliveryMaxIndexesPerBucketSnapshotSegment": ("1", "3"),
    "delayedDeliveryMaxNumBuckets": ("2", "5"),
    "isDelayedDeliveryDeliverAtTimeStrict": ("true", "false"),
    "activeConsumerFailoverDelayTimeMillis": ("0", "100"),
    "subscriptionKeySharedUseConsistentHashing": ("true", "false"),
    "subscriptionKeySharedConsistentHashingReplicaPoints": ("1", "5"),
    "keySharedLookAheadMsgInReplayThresholdPerConsumer": ("1", "5"),
    "keySharedLookAheadMsgInReplayThresholdPerSubscription": ("2", "10"),
    # Service and connections
    "defaultNumberOfNamespaceBundles": ("1", "3"),
    "maxConcurrentLookupRequest": ("1", "10"),
    "maxConcurrentTopicLoadRequest": ("1", "2"),
    "topicLoadTimeoutSeconds": ("2", "5"),
    "retentionCheckIntervalInSeconds": ("1", "2"),
    "messageExpiryCheckIntervalInMinutes": ("1",),
    "subscriptionExpiryCheckIntervalInMinutes": ("1",),
    "brokerServiceCompactionMonitorIntervalInSeconds": ("1", "3"),
    "backlogQuotaCheckEnabled": ("true", "false"),
    "backlogQuotaCheckIntervalInSeconds": ("1", "2"),
    "topicLevelPoliciesEnabled": ("true", "false"),
    "maxTopicsPerNamespace": ("100",),
    "keepAliveIntervalSeconds": ("1", "4"),
    "connectionLivenessCheckTimeoutMillis": ("0", "200", "2000"),
    "maxPendingPublishRequestsPerConnection": ("1", "2"),
    "maxMessagePublishBufferSizeInMB": ("1", "2"),
    "brokerMaxConnections": ("100",),
    "brokerMaxConnectionsPerIp": ("100",),
    "exposingBrokerEntryMetadataToClientEnabled": ("true", "false"),
}  # fmt: skip
DRAWN_BESIDE: Mapping[str, Sequence[str]] = {"journalFlushWhenQueueEmpty": ("true", "false")}
"""Drawn after all others and by themselves, so that a seed keeps what it had of those."""
SINGLE: Mapping[str, Sequence[str]] = {
    # Data that goes when it should: with these values nothing does within a run
    "autoSkipNonRecoverableData": ("true",),
    "ttlDurationDefaultInSeconds": ("2000000000",),  # simulated producers publish at 1970
    "subscriptionExpirationTimeMinutes": ("60",),
    "brokerDeleteInactiveTopicsEnabled": ("true",),
    "brokerDeleteInactiveTopicsFrequencySeconds": ("1", "2"),
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": ("60",),
    "brokerDeleteInactivePartitionedTopicMetadataEnabled": ("true", "false"),
    "backlogQuotaDefaultLimitGB": ("1",),
    "backlogQuotaDefaultRetentionPolicy": ("producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
    "brokerDeduplicationProducerInactivityTimeoutMinutes": ("1",),
    "brokerServiceCompactionThresholdInBytes": ("1", "3000"),
    "topicCompactionRetainNullKey": ("true", "false"),
    # Limits that are looked at, and that no client reaches
    "maxMessageSize": ("100000",),
    "maxConsumerMetadataSize": ("1", "100"),
    "maxNumPartitionsPerPartitionedTopic": ("1",),
    "maxConcurrentNonPersistentMessagePerConnection": ("1",),
    "enableNonPersistentTopics": ("true", "false"),
    "delayedDeliveryEnabled": ("true", "false"),
    "delayedDeliveryMaxDelayInMillis": ("1", "1000"),
    "maxUnackedMessagesPerSubscriptionOnBrokerBlocked": ("0.05", "0.5"),
    "systemTopicEnabled": ("true", "false"),
    "isSchemaValidationEnforced": ("true", "false"),
    "isAllowAutoUpdateSchemaEnabled": ("true", "false"),
    "enableBrokerTopicListWatcher": ("true", "false"),
    "dataIntegrityStampMissingCookies": ("true", "false"),
}  # fmt: skip
"""Values for a standalone."""
SMALL_DISK: Mapping[str, Sequence[str]] = {
    "diskUsageThreshold": ("0.9", "0.97"),
    "diskUsageWarnThreshold": ("0.5", "0.9"),
    "diskUsageLwmThreshold": ("0.6", "0.85"),
    "minUsableSizeForHighPriorityWrites": ("10000", "3000000"),
}  # fmt: skip
"""Values for a standalone with a disk of finite size."""
CLUSTER: Mapping[str, Sequence[str]] = {
    # Bookies
    "bookkeeperUseV2WireProtocol": ("true", "false"),
    "bookkeeperClientHealthCheckIntervalSeconds": ("1", "5"),
    "bookkeeperClientHealthCheckErrorThresholdPerInterval": ("1", "3"),
    "bookkeeperClientHealthCheckQuarantineTimeInSeconds": ("1", "5"),
    "bookkeeperClientQuarantineRatio": ("0.5", "1.0"),
    "bookkeeperClientRackawarePolicyEnabled": ("true", "false"),
    "bookkeeperClientRegionawarePolicyEnabled": ("true", "false"),
    "bookkeeperClientMinNumRacksPerWriteQuorum": ("1", "3"),
    "bookkeeper_ensemblePlacementPolicy": (
        "org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicy",
        "org.apache.bookkeeper.client.RegionAwareEnsemblePlacementPolicy",
        "org.apache.bookkeeper.client.DefaultEnsemblePlacementPolicy",
    ),
    "bookkeeperDiskWeightBasedPlacementEnabled": ("true", "false"),
    "bookkeeperClientGetBookieInfoIntervalSeconds": ("1", "3"),
    "bookkeeperClientGetBookieInfoRetryIntervalSeconds": ("1", "3"),
    # Load. Minutes are seconds (`simulation.cluster.machines`)
    "loadBalancerReportUpdateThresholdPercentage": ("0", "50"),
    "loadBalancerReportUpdateMinIntervalMillis": ("100", "1000"),
    "loadBalancerReportUpdateMaxIntervalMinutes": ("1", "3"),
    "loadBalancerBrokerOverloadedThresholdPercentage": ("1", "50"),
    "loadBalancerSheddingEnabled": ("true", "false"),
    "loadBalancerLoadSheddingStrategy": (
        "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
        "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder",
    ),
    "loadBalancerSheddingIntervalMinutes": ("1", "2"),
    "loadBalancerSheddingGracePeriodMinutes": ("0", "1"),
    "loadBalancerBrokerThresholdShedderPercentage": ("1", "5"),
    "loadBalancerHistoryResourcePercentage": ("0.0", "0.5"),
    "loadBalancerBundleUnloadMinThroughputThreshold": ("0", "0.001"),
    "loadBalancerBrokerLoadTargetStd": ("0.01", "0.1"),
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle": ("1", "5"),
    "loadBalancerAutoBundleSplitEnabled": ("true", "false"),
    "loadBalancerAutoUnloadSplitBundlesEnabled": ("true", "false"),
    "loadBalancerNamespaceBundleMaxTopics": ("1",),
    "loadBalancerNamespaceBundleMaxSessions": ("1", "3"),
    "loadBalancerNamespaceBundleMaxMsgRate": ("1", "10"),
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": ("1",),
    "loadBalancerNamespaceMaximumBundles": ("4", "16"),
    "loadBalancerOverrideBrokerNicSpeedGbps": ("0.000001", "1"),
    "failureDomainsEnabled": ("true", "false"),
    "loadBalancerResourceQuotaUpdateIntervalMinutes": ("1", "3"),
    "supportedNamespaceBundleSplitAlgorithms": ("range_equally_divide,topic_count_equally_divide,flow_or_qps_equally_divide",),
    "defaultNamespaceBundleSplitAlgorithm": (
        "range_equally_divide", "topic_count_equally_divide", "flow_or_qps_equally_divide",
    ),
}  # fmt: skip
"""Values for a cluster."""
TRANSFERS: Mapping[str, Sequence[str]] = {
    "maxActiveTransactionsPerCoordinator": ("1", "3"),
    "transactionBufferClientMaxConcurrentRequests": ("1", "2"),
    "transactionBufferClientOperationTimeoutInMills": ("50", "500"),
}  # fmt: skip
"""Values for a standalone whose clients move tokens in transactions."""
DRAWN_BY_PLANS = (
    "managedLedgerDefaultEnsembleSize", "managedLedgerDefaultWriteQuorum", "managedLedgerDefaultAckQuorum",
    "loadBalancerEnabled",
)  # fmt: skip
"""The plan of a cluster chooses these itself."""
ELSEWHERE: Sequence[Mapping[str, Sequence[str]]] = (SINGLE, SMALL_DISK, CLUSTER, TRANSFERS)
"""Drawn by `draw_some`, apart from all others, so that a seed keeps what it had of those."""
DRAWN: Mapping[str, Sequence[str]] = {**BOOKIE, **BROKER, **DRAWN_BESIDE}

NOT_DRAWN: Mapping[str, Sequence[str]] = {
    "names a place, a port, a file or a credential": (
        "brokerServicePort", "webServicePort", "bindAddress", "advertisedAddress", "advertisedListeners", "journalDirectories",
        "ledgerDirectories", "statusFilePath", "auditLogFile", "clusterName", "authenticationProviders", "anonymousUserRole",
        "tokenSecretKey", "tokenPublicKey", "tokenPublicAlg", "tokenAuthClaim", "tokenAudienceClaim", "tokenAudience",
        "basicAuthConf", "superUserRoles", "proxyRoles", "brokerServicePortTls", "webServicePortTls", "tlsCertificateFilePath",
        "tlsKeyFilePath", "tlsTrustCertsFilePath", "brokerClientAuthenticationPlugin", "brokerClientAuthenticationParameters",
        "brokerClientTrustCertsFilePath", "brokerClientCertificateFilePath", "brokerClientKeyFilePath",
    ),
    "is about TLS or who somebody is, and simulated connections have neither": (
        "authenticationEnabled", "authenticationRefreshCheckSeconds", "authenticateOriginalAuthData",
        "authenticateMetricsEndpoint", "tokenAllowedClockSkewSeconds", "authorizationEnabled", "authorizationProvider",
        "authorizationAllowWildcardsMatching", "tlsRequireTrustedClientCertOnConnect", "tlsAllowInsecureConnection",
        "tlsProtocols", "tlsCiphers", "tlsCertRefreshCheckDurationSec", "brokerClientTlsEnabled",
        "tlsHostnameVerificationEnabled", "encryptionRequireOnProducer",
    ),
    "is about HTTP, which no simulated client speaks": (
        "httpRequestsLimitEnabled", "httpRequestsMaxPerSecond", "exposeTopicLevelMetricsInPrometheus",
        "exposeConsumerLevelMetricsInPrometheus", "exposeProducerLevelMetricsInPrometheus",
        "exposeManagedLedgerMetricsInPrometheus", "exposeManagedCursorMetricsInPrometheus", "exposePreciseBacklogInPrometheus",
        "exposeSubscriptionBacklogSizeInPrometheus", "splitTopicAndPartitionLabelInPrometheus", "metricsServletTimeoutMs",
        "auditLogEnabled", "forceDeleteTenantAllowed", "forceDeleteNamespaceAllowed", "maxTenants", "maxNamespacesPerTenant",
        "schemaCompatibilityStrategy", "systemTopicSchemaCompatibilityStrategy",
        "subscriptionPatternMaxLength", "enableBrokerSideSubscriptionPatternEvaluation", "webSocketServiceEnabled",
        "webSocketMaxTextFrameSize", "webSocketSessionIdleTimeoutMillis", "webSocketPingDurationSeconds",
    ),
    "lets messages go, refuses clients or does not store, as asked: the checker allows none of it": (
        "journalSyncData", "forceReadOnlyBookie", "readOnlyModeEnabled", "managedLedgerForceRecovery",
        "allowAutoTopicCreation", "allowAutoSubscriptionCreation",
        "allowAutoTopicCreationType", "defaultNumPartitions", "subscriptionTypesEnabled", "enablePersistentTopics",
    ),
    "needs groups, racks or zones of bookies, which the simulated cluster does not have": (
        "bookkeeperClientIsolationGroups", "bookkeeperClientSecondaryIsolationGroups",
        "bookkeeperClientEnforceMinNumRacksPerWriteQuorum", "bookkeeperMinNumZonesPerWriteQuorum",
    ),
}  # fmt: skip
"""Settings that no seed tries, by reason."""

DRAWN_CHANCE = 0.5
DRAWN_AT_ONCE = (1, 2, 4, 8)
BESIDE_CHANCE = 0.1
SOME_CHANCE = 0.3


def draw(rng: random.Random) -> dict[str, str]:
    """The settings that a seed has beside its plan's: none for half of the seeds, else a few."""
    if rng.random() >= DRAWN_CHANCE:
        return {}
    keys = rng.sample(sorted(DRAWN.keys() - DRAWN_BESIDE.keys()), rng.choice(DRAWN_AT_ONCE))
    drawn = {key: rng.choice(DRAWN[key]) for key in keys}
    return drawn | {key: rng.choice(values) for key, values in DRAWN_BESIDE.items() if rng.random() < BESIDE_CHANCE}


def draw_some(table: Mapping[str, Sequence[str]], rng: random.Random) -> dict[str, str]:
    """Settings of a table that a seed has beside all others: none for most seeds, else a few."""
    if rng.random() >= SOME_CHANCE:
        return {}
    keys = rng.sample(sorted(table), min(len(table), rng.choice(DRAWN_AT_ONCE)))
    return {key: rng.choice(table[key]) for key in keys}


def fitting(shape: ConsumerShape, settings: Mapping[str, str]) -> ConsumerShape:
    """The consumer as it has to be under these settings: where its messages are limited it acknowledges all that it gets."""
    if settings.get("acknowledgmentAtBatchIndexLevelEnabled") == "false":
        shape = dataclasses.replace(shape, part_chance=0.0)
    if _UNACKED_LIMITS & settings.keys():
        shape = dataclasses.replace(shape, ack_chance=1.0, part_chance=0.0)
    return shape


_UNACKED_LIMITS = {"maxUnackedMessagesPerBroker", "maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"}
"""A consumer that keeps more messages than these without acknowledging them gets no others, rightly."""
