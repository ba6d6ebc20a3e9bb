"""Rates, limits and offloading of a namespace."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "get-max-subscriptions-per-topic", "NAMESPACE", "GET namespaces/{namespace}/maxSubscriptionsPerTopic", output="json"
    ),
    Command(
        "set-max-subscriptions-per-topic",
        "NAMESPACE --max-subscriptions-per-topic/-m:int!",
        "POST namespaces/{namespace}/maxSubscriptionsPerTopic",
        body="{max-subscriptions-per-topic}",
    ),
    Command("remove-max-subscriptions-per-topic", "NAMESPACE", "DELETE namespaces/{namespace}/maxSubscriptionsPerTopic"),
    Command(
        "set-dispatch-rate",
        "NAMESPACE --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp",
        "POST namespaces/{namespace}/dispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
    ),
    Command("remove-dispatch-rate", "NAMESPACE", "DELETE namespaces/{namespace}/dispatchRate"),
    Command("get-dispatch-rate", "NAMESPACE", "GET namespaces/{namespace}/dispatchRate", output="json"),
    Command(
        "set-subscribe-rate",
        "NAMESPACE --subscribe-rate/-sr:int=-1 --subscribe-rate-period/-st:int=30",
        "POST namespaces/{namespace}/subscribeRate",
        body={"subscribeThrottlingRatePerConsumer": "{subscribe-rate}", "ratePeriodInSecond": "{subscribe-rate-period}"},
    ),
    Command("get-subscribe-rate", "NAMESPACE", "GET namespaces/{namespace}/subscribeRate", output="json"),
    Command("remove-subscribe-rate", "NAMESPACE", "DELETE namespaces/{namespace}/subscribeRate"),
    Command(
        "set-subscription-dispatch-rate",
        "NAMESPACE --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp",
        "POST namespaces/{namespace}/subscriptionDispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
    ),
    Command(
        "get-subscription-dispatch-rate", "NAMESPACE", "GET namespaces/{namespace}/subscriptionDispatchRate", output="json"
    ),
    Command("remove-subscription-dispatch-rate", "NAMESPACE", "DELETE namespaces/{namespace}/subscriptionDispatchRate"),
    Command(
        "set-publish-rate",
        "NAMESPACE --msg-publish-rate/-m:int=-1 --byte-publish-rate/-b:long=-1",
        "POST namespaces/{namespace}/publishRate",
        body={"publishThrottlingRateInMsg": "{msg-publish-rate}", "publishThrottlingRateInByte": "{byte-publish-rate}"},
    ),
    Command("get-publish-rate", "NAMESPACE", "GET namespaces/{namespace}/publishRate", output="json"),
    Command("remove-publish-rate", "NAMESPACE", "DELETE namespaces/{namespace}/publishRate"),
    Command(
        "set-replicator-dispatch-rate",
        "NAMESPACE --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 --dispatch-rate-period/-dt:int=1",
        "POST namespaces/{namespace}/replicatorDispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": False,
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
    ),
    Command("get-replicator-dispatch-rate", "NAMESPACE", "GET namespaces/{namespace}/replicatorDispatchRate", output="json"),
    Command("remove-replicator-dispatch-rate", "NAMESPACE", "DELETE namespaces/{namespace}/replicatorDispatchRate"),
    Command("get-max-producers-per-topic", "NAMESPACE", "GET namespaces/{namespace}/maxProducersPerTopic", output="json"),
    Command(
        "set-max-producers-per-topic",
        "NAMESPACE --max-producers-per-topic/-p:int!",
        "POST namespaces/{namespace}/maxProducersPerTopic",
        body="{max-producers-per-topic}",
    ),
    Command("remove-max-producers-per-topic", "NAMESPACE", "DELETE namespaces/{namespace}/maxProducersPerTopic"),
    Command("get-max-consumers-per-topic", "NAMESPACE", "GET namespaces/{namespace}/maxConsumersPerTopic", output="json"),
    Command(
        "set-max-consumers-per-topic",
        "NAMESPACE --max-consumers-per-topic/-c:int!",
        "POST namespaces/{namespace}/maxConsumersPerTopic",
        body="{max-consumers-per-topic}",
    ),
    Command("remove-max-consumers-per-topic", "NAMESPACE", "DELETE namespaces/{namespace}/maxConsumersPerTopic"),
    Command(
        "get-max-consumers-per-subscription",
        "NAMESPACE",
        "GET namespaces/{namespace}/maxConsumersPerSubscription",
        output="json",
    ),
    Command(
        "set-max-consumers-per-subscription",
        "NAMESPACE --max-consumers-per-subscription/-c:int!",
        "POST namespaces/{namespace}/maxConsumersPerSubscription",
        body="{max-consumers-per-subscription}",
    ),
    Command("remove-max-consumers-per-subscription", "NAMESPACE", "DELETE namespaces/{namespace}/maxConsumersPerSubscription"),
    Command(
        "get-max-unacked-messages-per-subscription",
        "NAMESPACE",
        "GET namespaces/{namespace}/maxUnackedMessagesPerSubscription",
        output="json",
    ),
    Command(
        "set-max-unacked-messages-per-subscription",
        "NAMESPACE --max-unacked-messages-per-subscription/-c:int!",
        "POST namespaces/{namespace}/maxUnackedMessagesPerSubscription",
        body="{max-unacked-messages-per-subscription}",
    ),
    Command(
        "remove-max-unacked-messages-per-subscription",
        "NAMESPACE",
        "DELETE namespaces/{namespace}/maxUnackedMessagesPerSubscription",
    ),
    Command(
        "get-max-unacked-messages-per-consumer",
        "NAMESPACE",
        "GET namespaces/{namespace}/maxUnackedMessagesPerConsumer",
        output="json",
    ),
    Command(
        "set-max-unacked-messages-per-consumer",
        "NAMESPACE --max-unacked-messages-per-topic/-c:int!",
        "POST namespaces/{namespace}/maxUnackedMessagesPerConsumer",
        body="{max-unacked-messages-per-topic}",
    ),
    Command(
        "remove-max-unacked-messages-per-consumer", "NAMESPACE", "DELETE namespaces/{namespace}/maxUnackedMessagesPerConsumer"
    ),
    Command("get-offload-threshold", "NAMESPACE", run="clusters:get_offload_threshold"),
    Command("set-offload-threshold", "NAMESPACE --size/-s:bytes! --time/-t:seconds=-1", run="clusters:set_offload_threshold"),
    Command("get-offload-deletion-lag", "NAMESPACE", run="clusters:get_offload_deletion_lag"),
    Command(
        "set-offload-deletion-lag",
        "NAMESPACE --lag/-l:millis!",
        "PUT namespaces/{namespace}/offloadDeletionLagMs",
        body="{lag}",
    ),
    Command("clear-offload-deletion-lag", "NAMESPACE", "DELETE namespaces/{namespace}/offloadDeletionLagMs"),
    Command(
        "get-schema-autoupdate-strategy",
        "NAMESPACE",
        "GET namespaces/{namespace}/schemaAutoUpdateCompatibilityStrategy",
        output="upper",
    ),
    Command(
        "set-schema-autoupdate-strategy",
        "NAMESPACE --compatibility/-c:string --disabled/-d",
        run="clusters:set_schema_autoupdate_strategy",
    ),
    Command(
        "get-schema-compatibility-strategy",
        "NAMESPACE",
        "GET namespaces/{namespace}/schemaCompatibilityStrategy",
        output="plain",
    ),
    Command(
        "set-schema-compatibility-strategy",
        "NAMESPACE "
        "--compatibility/-c:choice(UNDEFINED|ALWAYS_INCOMPATIBLE|ALWAYS_COMPATIBLE|BACKWARD|FORWARD|FULL|BACKWARD_TRANSITIVE|FORWARD_TRANSITIVE|FULL_TRANSITIVE)",
        "PUT namespaces/{namespace}/schemaCompatibilityStrategy",
        body="{compatibility}",
    ),
    Command(
        "set-offload-policies",
        "NAMESPACE --driver/-d! --region/-r:string --bucket/-b:string --endpoint/-e:string "
        "--aws-id/-i:string --aws-secret/-s:string --s3-role/-ro:string --s3-role-session-name/-rsn:string "
        "--maxBlockSize/-mbs:bytes=67108864 --readBufferSize/-rbs:bytes=1048576 "
        "--offloadAfterElapsed/-oae:millis --offloadAfterThreshold/-oat:bytes "
        "--offloadAfterThresholdInSeconds/-oats:seconds --offloadedReadPriority/-orp:string",
        "POST namespaces/{namespace}/offloadPolicies",
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
            "managedLedgerOffloadMaxBlockSizeInBytes": "{maxBlockSize}",
            "managedLedgerOffloadReadBufferSizeInBytes": "{readBufferSize}",
            "managedLedgerOffloadThresholdInBytes": "{offloadAfterThreshold}",
            "managedLedgerOffloadThresholdInSeconds": "{offloadAfterThresholdInSeconds}",
            "managedLedgerOffloadDeletionLagInMillis": "{offloadAfterElapsed}",
        },
    ),
    Command("remove-offload-policies", "NAMESPACE", "DELETE namespaces/{namespace}/removeOffloadPolicies"),
    Command("get-offload-policies", "NAMESPACE", "GET namespaces/{namespace}/offloadPolicies", output="json"),
    Command(
        "set-max-topics-per-namespace",
        "NAMESPACE --max-topics-per-namespace/-t:int!",
        "POST namespaces/{namespace}/maxTopicsPerNamespace",
        body="{max-topics-per-namespace}",
    ),
    Command("get-max-topics-per-namespace", "NAMESPACE", "GET namespaces/{namespace}/maxTopicsPerNamespace", output="json"),
    Command("remove-max-topics-per-namespace", "NAMESPACE", "DELETE namespaces/{namespace}/maxTopicsPerNamespace"),
)
