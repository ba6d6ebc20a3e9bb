"""Classes of Apache's tests that run here, and tests of them that fail, each with its reason. That list only shrinks."""

_API, _IMPL, _BROKER = "org.apache.pulsar.client.api", "org.apache.pulsar.client.impl", "org.apache.pulsar.broker"
CLASSES: tuple[str, ...] = (
    f"{_API}.ConsumerAckListTest",
    f"{_API}.DeadLetterTopicTest",
    f"{_API}.SimpleProducerConsumerTest",
    f"{_API}.TopicReaderTest",
    f"{_IMPL}.ReaderTest",
    f"{_IMPL}.TableViewTest",
    f"{_IMPL}.ZeroQueueSizeTest",
    f"{_BROKER}.admin.AdminApi2Test",
    f"{_BROKER}.admin.TopicPoliciesTest",
    f"{_BROKER}.service.BatchMessageTest",
    f"{_BROKER}.service.SubscriptionSeekTest",
)

_FIRST_VERSION = "makes a namespace or a topic of the first version, whose names are refused"
_SET_INSIDE = "sets a value in the broker's own configuration object while it runs, which is in another process here"
_ABSENT = "asks for geo-replication or tiered storage, which is not there"
_QUOTAS = "expects that reading a topic's quotas stores the broker's in its namespace (docs/differences.md)"
_NO_NAMESPACE = (
    "its topic's name is of the first version, whose namespace nobody made; Apache looks for no policies of such names"
)

KNOWN: dict[str, str] = {
    "AdminApi2Test.brokerNamespaceIsolationPoliciesUpdateOnTime": "expects the load manager of a cluster; a standalone serves a"
    " namespace whose policy leaves it no broker, as Apache's does (NoopLoadManager in its standalone.conf)",
    "AdminApi2Test.testGrantAndRevokePermissions": "grants permissions on several topics at once; here it is a topic at a time",
    "AdminApi2Test.testListOfNamespaceBundles": _FIRST_VERSION,
    "AdminApi2Test.testNonPartitionedTopic": _FIRST_VERSION,
    "AdminApi2Test.testOverridesNamespaceOffloadThreshold": _ABSENT,
    "AdminApi2Test.testPartitionedStatsAggregationByProducerName": _SET_INSIDE,
    "AdminApi2Test.testPartitionedStatsAggregationByProducerNamePerPartition": _SET_INSIDE,
    "AdminApi2Test.testReplicationPeerCluster": _FIRST_VERSION,
    "AdminApi2Test.testResetCursorOnPosition": _FIRST_VERSION,
    "AdminApi2Test.testUpdatePartitionsErrorCode": "names a namespace that nobody made: 404 here, and 409 from Apache",
    "AdminApi2Test.testLoadReportApi": "asks for other load managers, which end the start (docs/differences.md)",
    "SubscriptionSeekTest.testSeekForBatch": _NO_NAMESPACE,
    "SubscriptionSeekTest.testSeekForBatchByAdmin": _NO_NAMESPACE,
    "SubscriptionSeekTest.testSeekForBatchMessageAndSpecifiedBatchIndex": _NO_NAMESPACE,
    "TopicPoliciesTest.testGetPersistenceApplied": "expects quorums of two; a standalone has one bookie",
    "TopicPoliciesTest.testGetReplicatorRateApplied": _ABSENT,
    "TopicPoliciesTest.testGetSizeBasedBacklogQuotaApplied": _QUOTAS,
    "TopicPoliciesTest.testGetTimeBasedBacklogQuotaApplied": _QUOTAS,
    "TopicPoliciesTest.testNonPersistentMaxConsumerOnSub": _SET_INSIDE,
    "TopicPoliciesTest.testPriorityAndDisableMaxConsumersOnSub": _SET_INSIDE,
    "TopicPoliciesTest.testProduceChangesWithEncryptionRequired": "expects the topic of policies before any policy is set",
    "TopicPoliciesTest.testRemoveLocalCluster": _ABSENT,
    "TopicPoliciesTest.testReplicatorClusterApi": _ABSENT,
    "TopicPoliciesTest.testReplicatorRateApi": _ABSENT,
    "TopicPoliciesTest.testSetNonBacklogQuotType": "reads the reason from the status line of HTTP; ours is in the body",
    "ZeroQueueSizeTest.testFailedZeroQueueSizeBatchMessage": _NO_NAMESPACE,
}
"""Tests that fail on every machine."""

MAY_FAIL: dict[str, str] = {}
"""Tests that fail in some runs, for a reason that lies outside the broker."""
