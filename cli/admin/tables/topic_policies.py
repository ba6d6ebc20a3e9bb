"""The policies of a topic; those of rates and limits are in a module of their own."""

from cli.admin.table import Command
from cli.admin.tables import topic_rates_and_limits

_OTHERS = (
    Command("delete", "TOPIC", "DELETE {topic}/policies"),
    Command(
        "get-message-ttl",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/messageTTL?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-message-ttl", "TOPIC -t/--ttl:seconds! --global/-g", "POST {topic}/messageTTL?messageTTL={ttl}&isGlobal={?global}"
    ),
    Command("remove-message-ttl", "TOPIC --global/-g", "DELETE {topic}/messageTTL?messageTTL=0&isGlobal={?global}"),
    Command(
        "set-subscription-types-enabled",
        "TOPIC --types/-t:list! --global/-g",
        "POST {topic}/subscriptionTypesEnabled?isGlobal={?global}",
        body="{types}",
    ),
    Command(
        "get-subscription-types-enabled",
        "TOPIC --global/-g",
        "GET {topic}/subscriptionTypesEnabled?isGlobal={?global}",
        output="json",
    ),
    Command(
        "remove-subscription-types-enabled", "TOPIC --global/-g", "DELETE {topic}/subscriptionTypesEnabled?isGlobal={?global}"
    ),
    Command(
        "get-retention",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/retention?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-retention",
        "TOPIC --time/-t:minutes! --size/-s:megabytes! --global/-g",
        "POST {topic}/retention?isGlobal={?global}",
        body={"retentionTimeInMinutes": "{time}", "retentionSizeInMB": "{size}"},
    ),
    Command("remove-retention", "TOPIC --global/-g", "DELETE {topic}/retention?isGlobal={?global}"),
    Command(
        "get-backlog-quota",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/backlogQuotaMap?applied={applied}&isGlobal={?global}",
        output="quotas",
    ),
    Command(
        "set-backlog-quota",
        "TOPIC -l/--limit:bytes -lt/--limitTime:seconds -p/--policy! -t/--type:string=destination_storage --global/-g",
        run="clusters:set_topic_backlog_quota",
    ),
    Command(
        "remove-backlog-quota",
        "TOPIC -t/--type:string=destination_storage --global/-g",
        "DELETE {topic}/backlogQuota?backlogQuotaType={type}&isGlobal={?global}",
    ),
    Command(
        "set-deduplication",
        "TOPIC --enable/-e --disable/-d --global/-g",
        "POST {topic}/deduplicationEnabled?isGlobal={?global}",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command(
        "get-deduplication",
        "TOPIC --global/-g",
        "GET {topic}/deduplicationEnabled?applied=false&isGlobal={?global}",
        output="json",
    ),
    Command("remove-deduplication", "TOPIC --global/-g", "DELETE {topic}/deduplicationEnabled?isGlobal={?global}"),
    Command(
        "get-deduplication-snapshot-interval",
        "TOPIC --global/-g",
        "GET {topic}/deduplicationSnapshotInterval?isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-deduplication-snapshot-interval",
        "TOPIC -i/--interval:int! --global/-g",
        "POST {topic}/deduplicationSnapshotInterval?isGlobal={?global}",
        body="{interval}",
    ),
    Command(
        "remove-deduplication-snapshot-interval",
        "TOPIC --global/-g",
        "DELETE {topic}/deduplicationSnapshotInterval?isGlobal={?global}",
    ),
    Command("get-persistence", "TOPIC --global/-g", "GET {topic}/persistence?applied=false&isGlobal={?global}", output="json"),
    Command(
        "set-persistence",
        "TOPIC -e/--bookkeeper-ensemble:int=2 -w/--bookkeeper-write-quorum:int=2 "
        "-a/--bookkeeper-ack-quorum:int=2 -r/--ml-mark-delete-max-rate:double=0.0 --global/-g "
        "-c/--ml-storage-class:string",
        "POST {topic}/persistence?isGlobal={?global}",
        body={
            "bookkeeperEnsemble": "{bookkeeper-ensemble}",
            "bookkeeperWriteQuorum": "{bookkeeper-write-quorum}",
            "bookkeeperAckQuorum": "{bookkeeper-ack-quorum}",
            "managedLedgerMaxMarkDeleteRate": "{ml-mark-delete-max-rate}",
            "managedLedgerStorageClassName": "{ml-storage-class}",
        },
    ),
    Command("remove-persistence", "TOPIC --global/-g", "DELETE {topic}/persistence?isGlobal={?global}"),
    Command(
        "get-compaction-threshold",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/compactionThreshold?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-compaction-threshold",
        "TOPIC --threshold/-t:bytes! --global/-g",
        "POST {topic}/compactionThreshold?isGlobal={?global}",
        body="{threshold}",
    ),
    Command("remove-compaction-threshold", "TOPIC --global/-g", "DELETE {topic}/compactionThreshold?isGlobal={?global}"),
    Command(
        "get-delayed-delivery",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/delayedDelivery?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-delayed-delivery",
        "TOPIC --enable/-e --disable/-d --time/-t:millis=1 --global/-g --maxDelay/-md:millis=0",
        "POST {topic}/delayedDelivery?isGlobal={?global}",
        body={"tickTime": "{time}", "active": "{enable}", "maxDeliveryDelayInMillis": "{maxDelay}"},
        one_of=("enable", "disable"),
    ),
    Command("remove-delayed-delivery", "TOPIC --global/-g", "DELETE {topic}/delayedDelivery?isGlobal={?global}"),
    Command(
        "get-offload-policies",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/offloadPolicies?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-offload-policies",
        "TOPIC -d/--driver! -r/--region:string -b/--bucket:string -e/--endpoint:string -i/--aws-id:string "
        "-s/--aws-secret:string --ro/--s3-role:string --s3-role-session-name/-rsn:string "
        "-m/--maxBlockSizeInBytes:int=67108864 -rb/--readBufferSizeInBytes:int=1048576 "
        "-t/--offloadThresholdInBytes:bytes -ts/--offloadThresholdInSeconds:seconds "
        "-dl/--offloadDeletionLagInMillis:millis --offloadedReadPriority/-orp:string --global/-g",
        "POST {topic}/offloadPolicies?isGlobal={?global}",
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
            "managedLedgerOffloadThresholdInSeconds": "{offloadThresholdInSeconds}",
            "managedLedgerOffloadDeletionLagInMillis": "{offloadDeletionLagInMillis}",
        },
    ),
    Command("remove-offload-policies", "TOPIC --global/-g", "DELETE {topic}/offloadPolicies?isGlobal={?global}"),
    Command(
        "get-inactive-topic-policies",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/inactiveTopicPolicies?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-inactive-topic-policies",
        "TOPIC --enable-delete-while-inactive/-e --disable-delete-while-inactive/-d "
        "--max-inactive-duration/-t:seconds! --delete-mode/-m! --global/-g",
        "POST {topic}/inactiveTopicPolicies?isGlobal={?global}",
        body={
            "inactiveTopicDeleteMode": "{delete-mode}",
            "maxInactiveDurationSeconds": "{max-inactive-duration}",
            "deleteWhileInactive": "{enable-delete-while-inactive}",
        },
        one_of=("enable-delete-while-inactive", "disable-delete-while-inactive"),
    ),
    Command("remove-inactive-topic-policies", "TOPIC --global/-g", "DELETE {topic}/inactiveTopicPolicies?isGlobal={?global}"),
    Command(
        "get-entry-filters-per-topic",
        "TOPIC --global/-g -ap/--applied",
        "GET {topic}/entryFilters?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-entry-filters-per-topic",
        "TOPIC --entry-filters-name/-efn! --global/-g",
        "POST {topic}/entryFilters?isGlobal={?global}",
        body={"entryFilterNames": "{entry-filters-name}"},
    ),
    Command("remove-entry-filters-per-topic", "TOPIC --global/-g", "DELETE {topic}/entryFilters?isGlobal={?global}"),
    Command(
        "set-auto-subscription-creation",
        "TOPIC --enable/-e --global/-g",
        "POST {topic}/autoSubscriptionCreation?isGlobal={?global}",
        body={"allowAutoSubscriptionCreation": "{enable}"},
    ),
    Command(
        "get-auto-subscription-creation",
        "TOPIC --applied/-a --global/-g",
        "GET {topic}/autoSubscriptionCreation?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "remove-auto-subscription-creation", "TOPIC --global/-g", "DELETE {topic}/autoSubscriptionCreation?isGlobal={?global}"
    ),
    Command(
        "set-dispatcher-pause-on-ack-state-persistent",
        "TOPIC --global/-g",
        "POST {topic}/dispatcherPauseOnAckStatePersistent?isGlobal={?global}",
    ),
    Command(
        "get-dispatcher-pause-on-ack-state-persistent",
        "TOPIC --applied/-a --global/-g",
        "GET {topic}/dispatcherPauseOnAckStatePersistent?applied={applied}&isGlobal={?global}",
        output="plain",
    ),
    Command(
        "remove-dispatcher-pause-on-ack-state-persistent",
        "TOPIC --global/-g",
        "DELETE {topic}/dispatcherPauseOnAckStatePersistent?isGlobal={?global}",
    ),
    Command(
        "get-replication-clusters",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/replication?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-replication-clusters",
        "TOPIC --clusters/-c:list! --global/-g",
        "POST {topic}/replication?isGlobal={?global}",
        body="{clusters}",
    ),
    Command("remove-replication-clusters", "TOPIC --global/-g", "DELETE {topic}/replication?isGlobal={?global}"),
)
COMMANDS = (*_OTHERS, *topic_rates_and_limits.COMMANDS)
