"""Storage of a namespace: retention, quotas, expiry, deduplication, compaction."""

from cli.admin.table import Command

COMMANDS = (
    Command("get-backlog-quotas", "NAMESPACE", "GET namespaces/{namespace}/backlogQuotaMap", output="quotas"),
    Command(
        "set-backlog-quota",
        "NAMESPACE -l/--limit:bytes -lt/--limitTime:seconds -p/--policy! -t/--type:string=destination_storage",
        run="clusters:set_namespace_backlog_quota",
    ),
    Command(
        "remove-backlog-quota",
        "NAMESPACE -t/--type:string=destination_storage",
        "DELETE namespaces/{namespace}/backlogQuota?backlogQuotaType={type}",
    ),
    Command("get-persistence", "NAMESPACE", "GET namespaces/{namespace}/persistence", output="json"),
    Command(
        "set-persistence",
        "NAMESPACE -e/--bookkeeper-ensemble:int=2 -w/--bookkeeper-write-quorum:int=2 "
        "-a/--bookkeeper-ack-quorum:int=2 -r/--ml-mark-delete-max-rate:double=0.0 "
        "-c/--ml-storage-class:string",
        "POST namespaces/{namespace}/persistence",
        body={
            "bookkeeperEnsemble": "{bookkeeper-ensemble}",
            "bookkeeperWriteQuorum": "{bookkeeper-write-quorum}",
            "bookkeeperAckQuorum": "{bookkeeper-ack-quorum}",
            "managedLedgerMaxMarkDeleteRate": "{ml-mark-delete-max-rate}",
            "managedLedgerStorageClassName": "{ml-storage-class}",
        },
    ),
    Command("remove-persistence", "NAMESPACE", "DELETE namespaces/{namespace}/persistence"),
    Command("get-message-ttl", "NAMESPACE", "GET namespaces/{namespace}/messageTTL", output="json"),
    Command(
        "set-message-ttl", "NAMESPACE --messageTTL/-ttl:seconds!", "POST namespaces/{namespace}/messageTTL", body="{messageTTL}"
    ),
    Command("remove-message-ttl", "NAMESPACE", "DELETE namespaces/{namespace}/messageTTL"),
    Command(
        "set-deduplication",
        "NAMESPACE --enable/-e --disable/-d",
        "POST namespaces/{namespace}/deduplication",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command("get-deduplication", "NAMESPACE", "GET namespaces/{namespace}/deduplication", output="json"),
    Command("remove-deduplication", "NAMESPACE", "DELETE namespaces/{namespace}/deduplication"),
    Command("get-retention", "NAMESPACE", "GET namespaces/{namespace}/retention", output="json"),
    Command(
        "set-retention",
        "NAMESPACE --time/-t:minutes! --size/-s:megabytes!",
        "POST namespaces/{namespace}/retention",
        body={"retentionTimeInMinutes": "{time}", "retentionSizeInMB": "{size}"},
    ),
    Command("remove-retention", "NAMESPACE", "DELETE namespaces/{namespace}/retention"),
    Command("clear-backlog", "NAMESPACE --sub/-s:string --bundle/-b:string --force/-force", run="clusters:clear_backlog"),
    Command(
        "set-delayed-delivery",
        "NAMESPACE --enable/-e --disable/-d --time/-t:millis=1 --maxDelay/-md:millis=0",
        "POST namespaces/{namespace}/delayedDelivery",
        body={"tickTime": "{time}", "active": "{enable}", "maxDeliveryDelayInMillis": "{maxDelay}"},
        one_of=("enable", "disable"),
    ),
    Command("get-delayed-delivery", "NAMESPACE", "GET namespaces/{namespace}/delayedDelivery", output="json"),
    Command("remove-delayed-delivery", "NAMESPACE", "DELETE namespaces/{namespace}/delayedDelivery"),
    Command("get-inactive-topic-policies", "NAMESPACE", "GET namespaces/{namespace}/inactiveTopicPolicies", output="json"),
    Command(
        "set-inactive-topic-policies",
        "NAMESPACE --enable-delete-while-inactive/-e --disable-delete-while-inactive/-d "
        "--max-inactive-duration/-t:seconds! --delete-mode/-m!",
        "POST namespaces/{namespace}/inactiveTopicPolicies",
        body={
            "inactiveTopicDeleteMode": "{delete-mode}",
            "maxInactiveDurationSeconds": "{max-inactive-duration}",
            "deleteWhileInactive": "{enable-delete-while-inactive}",
        },
        one_of=("enable-delete-while-inactive", "disable-delete-while-inactive"),
    ),
    Command("remove-inactive-topic-policies", "NAMESPACE", "DELETE namespaces/{namespace}/inactiveTopicPolicies"),
    Command("get-compaction-threshold", "NAMESPACE", "GET namespaces/{namespace}/compactionThreshold", output="json"),
    Command(
        "set-compaction-threshold",
        "NAMESPACE --threshold/-t:bytes!",
        "PUT namespaces/{namespace}/compactionThreshold",
        body="{threshold}",
    ),
    Command("remove-compaction-threshold", "NAMESPACE", "DELETE namespaces/{namespace}/compactionThreshold"),
    Command(
        "set-deduplication-snapshot-interval",
        "NAMESPACE --interval/-i:int!",
        "POST namespaces/{namespace}/deduplicationSnapshotInterval",
        body="{interval}",
    ),
    Command(
        "get-deduplication-snapshot-interval",
        "NAMESPACE",
        "GET namespaces/{namespace}/deduplicationSnapshotInterval",
        output="json",
    ),
    Command("remove-deduplication-snapshot-interval", "NAMESPACE", "POST namespaces/{namespace}/deduplicationSnapshotInterval"),
)
