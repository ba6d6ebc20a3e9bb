"""Other policies of a topic under `topics`, where they were before `topicPolicies`."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "get-backlog-quotas",
        "TOPIC -ap/--applied",
        "GET {topic}/backlogQuotaMap?applied={applied}",
        output="quotas",
        hidden=True,
    ),
    Command(
        "set-backlog-quota",
        "TOPIC -l/--limit:bytes -lt/--limitTime:seconds -p/--policy! -t/--type:string=destination_storage",
        run="clusters:set_topic_backlog_quota",
        hidden=True,
    ),
    Command(
        "remove-backlog-quota",
        "TOPIC -t/--type:string=destination_storage",
        "DELETE {topic}/backlogQuota?backlogQuotaType={type}",
        hidden=True,
    ),
    Command("get-message-ttl", "TOPIC -ap/--applied", "GET {topic}/messageTTL?applied={applied}", output="json", hidden=True),
    Command("set-message-ttl", "TOPIC -t/--ttl:seconds!", "POST {topic}/messageTTL?messageTTL={ttl}", hidden=True),
    Command("remove-message-ttl", "TOPIC", "DELETE {topic}/messageTTL?messageTTL=0", hidden=True),
    Command(
        "set-retention",
        "TOPIC --time/-t:minutes! --size/-s:megabytes!",
        "POST {topic}/retention",
        body={"retentionTimeInMinutes": "{time}", "retentionSizeInMB": "{size}"},
        hidden=True,
    ),
    Command("remove-retention", "TOPIC", "DELETE {topic}/retention", hidden=True),
    Command("enable-deduplication", "TOPIC", "POST {topic}/deduplicationEnabled", body=True, hidden=True),
    Command("disable-deduplication", "TOPIC", "POST {topic}/deduplicationEnabled", body=False, hidden=True),
    Command("get-deduplication-enabled", "TOPIC", "GET {topic}/deduplicationEnabled?applied=false", output="json", hidden=True),
    Command(
        "set-deduplication",
        "TOPIC --enable/-e --disable/-d",
        "POST {topic}/deduplicationEnabled",
        body="{enable}",
        one_of=("enable", "disable"),
        hidden=True,
    ),
    Command("get-deduplication", "TOPIC", "GET {topic}/deduplicationEnabled?applied=false", output="json", hidden=True),
    Command("remove-deduplication", "TOPIC", "DELETE {topic}/deduplicationEnabled", hidden=True),
    Command(
        "get-deduplication-snapshot-interval", "TOPIC", "GET {topic}/deduplicationSnapshotInterval", output="json", hidden=True
    ),
    Command(
        "set-deduplication-snapshot-interval",
        "TOPIC -i/--interval:int!",
        "POST {topic}/deduplicationSnapshotInterval",
        body="{interval}",
        hidden=True,
    ),
    Command("remove-deduplication-snapshot-interval", "TOPIC", "DELETE {topic}/deduplicationSnapshotInterval", hidden=True),
    Command(
        "get-delayed-delivery",
        "TOPIC -ap/--applied",
        "GET {topic}/delayedDelivery?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-delayed-delivery",
        "TOPIC --enable/-e --disable/-d --time/-t:millis=1 --maxDelay/-md:millis=0",
        "POST {topic}/delayedDelivery",
        body={"tickTime": "{time}", "active": "{enable}", "maxDeliveryDelayInMillis": "{maxDelay}"},
        one_of=("enable", "disable"),
        hidden=True,
    ),
    Command("remove-delayed-delivery", "TOPIC", "DELETE {topic}/delayedDelivery", hidden=True),
    Command("get-persistence", "TOPIC", "GET {topic}/persistence?applied=false", output="json", hidden=True),
    Command(
        "set-persistence",
        "TOPIC -e/--bookkeeper-ensemble:int=2 -w/--bookkeeper-write-quorum:int=2 "
        "-a/--bookkeeper-ack-quorum:int=2 -r/--ml-mark-delete-max-rate:double=0.0 "
        "-c/--ml-storage-class:string",
        "POST {topic}/persistence",
        body={
            "bookkeeperEnsemble": "{bookkeeper-ensemble}",
            "bookkeeperWriteQuorum": "{bookkeeper-write-quorum}",
            "bookkeeperAckQuorum": "{bookkeeper-ack-quorum}",
            "managedLedgerMaxMarkDeleteRate": "{ml-mark-delete-max-rate}",
            "managedLedgerStorageClassName": "{ml-storage-class}",
        },
        hidden=True,
    ),
    Command("remove-persistence", "TOPIC", "DELETE {topic}/persistence", hidden=True),
    Command(
        "get-offload-policies",
        "TOPIC -ap/--applied",
        "GET {topic}/offloadPolicies?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-offload-policies",
        "TOPIC -d/--driver! -r/--region:string -b/--bucket:string -e/--endpoint:string -i/--aws-id:string "
        "-s/--aws-secret:string --ro/--s3-role:string --s3-role-session-name/-rsn:string "
        "-m/--maxBlockSizeInBytes/--maxBlockSize/-mbs:bytes=67108864 "
        "-rb/--readBufferSizeInBytes/--readBufferSize/-rbs:bytes=1048576 "
        "-t/--offloadThresholdInBytes/--offloadAfterThreshold/-oat:bytes "
        "-ts/--offloadThresholdInSeconds/--offloadAfterThresholdInSeconds/-oats:seconds "
        "-dl/--offloadDeletionLagInMillis/--offloadAfterElapsed/-oae:millis "
        "--offloadedReadPriority/-orp:string",
        "POST {topic}/offloadPolicies",
        body={
            "managedLedgerOffloadDriver": "{driver}",
            "managedLedgerOffloadRegion": "{region}",
            "managedLedgerOffloadBucket": "{bucket}",
            "managedLedgerOffloadServiceEndpoint": "{endpoint}",
            "s3ManagedLedgerOffloadCredentialId": "{aws-id}",
            "s3ManagedLedgerOffloadCredentialSecret": "{aws-secret}",
            "s3ManagedLedgerOffloadRole": "{s3-role}",
            "s3ManagedLedgerOffloadRoleSessionName": "{s3-role-session-name}",
            "managedLedgerOffloadedReadPriority": "{offloadedReadPriority}",
            "managedLedgerOffloadMaxBlockSizeInBytes": "{maxBlockSizeInBytes}",
            "managedLedgerOffloadReadBufferSizeInBytes": "{readBufferSizeInBytes}",
            "managedLedgerOffloadThresholdInBytes": "{offloadThresholdInBytes}",
            "managedLedgerOffloadThresholdInSeconds": "{offloadAfterThresholdInSeconds}",
            "managedLedgerOffloadDeletionLagInMillis": "{offloadDeletionLagInMillis}",
        },
        hidden=True,
    ),
    Command("remove-offload-policies", "TOPIC", "DELETE {topic}/offloadPolicies", hidden=True),
    Command(
        "get-compaction-threshold",
        "TOPIC -ap/--applied",
        "GET {topic}/compactionThreshold?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-compaction-threshold",
        "TOPIC --threshold/-t:bytes!",
        "POST {topic}/compactionThreshold",
        body="{threshold}",
        hidden=True,
    ),
    Command("remove-compaction-threshold", "TOPIC", "DELETE {topic}/compactionThreshold", hidden=True),
    Command(
        "set-subscription-types-enabled",
        "TOPIC --types/-t:list!",
        "POST {topic}/subscriptionTypesEnabled",
        body="{types}",
        hidden=True,
    ),
    Command("get-subscription-types-enabled", "TOPIC", "GET {topic}/subscriptionTypesEnabled", output="json", hidden=True),
    Command("remove-subscription-types-enabled", "TOPIC", "DELETE {topic}/subscriptionTypesEnabled", hidden=True),
    Command(
        "get-inactive-topic-policies",
        "TOPIC -ap/--applied",
        "GET {topic}/inactiveTopicPolicies?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-inactive-topic-policies",
        "TOPIC --enable-delete-while-inactive/-e --disable-delete-while-inactive/-d "
        "--max-inactive-duration/-t:seconds! --delete-mode/-m!",
        "POST {topic}/inactiveTopicPolicies",
        body={
            "inactiveTopicDeleteMode": "{delete-mode}",
            "maxInactiveDurationSeconds": "{max-inactive-duration}",
            "deleteWhileInactive": "{enable-delete-while-inactive}",
        },
        one_of=("enable-delete-while-inactive", "disable-delete-while-inactive"),
        hidden=True,
    ),
    Command("remove-inactive-topic-policies", "TOPIC", "DELETE {topic}/inactiveTopicPolicies", hidden=True),
)
