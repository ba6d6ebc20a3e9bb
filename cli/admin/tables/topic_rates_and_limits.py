"""Rates and limits of a topic."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "get-max-unacked-messages-per-consumer",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/maxUnackedMessagesOnConsumer?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-unacked-messages-per-consumer",
        "TOPIC -m/--maxNum:int! --global/-g",
        "POST {topic}/maxUnackedMessagesOnConsumer?isGlobal={?global}",
        body="{maxNum}",
    ),
    Command(
        "remove-max-unacked-messages-per-consumer",
        "TOPIC --global/-g",
        "DELETE {topic}/maxUnackedMessagesOnConsumer?isGlobal={?global}",
    ),
    Command(
        "get-max-consumers-per-subscription",
        "TOPIC --global/-g",
        "GET {topic}/maxConsumersPerSubscription?isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-consumers-per-subscription",
        "TOPIC --max-consumers-per-subscription/-c:int! --global/-g",
        "POST {topic}/maxConsumersPerSubscription?isGlobal={?global}",
        body="{max-consumers-per-subscription}",
    ),
    Command(
        "remove-max-consumers-per-subscription",
        "TOPIC --global/-g",
        "DELETE {topic}/maxConsumersPerSubscription?isGlobal={?global}",
    ),
    Command(
        "get-max-producers",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/maxProducers?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-producers",
        "TOPIC --max-producers/-p:int! --global/-g",
        "POST {topic}/maxProducers?isGlobal={?global}",
        body="{max-producers}",
    ),
    Command("remove-max-producers", "TOPIC --global/-g", "DELETE {topic}/maxProducers?isGlobal={?global}"),
    Command("get-max-message-size", "TOPIC --global/-g", "GET {topic}/maxMessageSize?isGlobal={?global}", output="json"),
    Command(
        "set-max-message-size",
        "TOPIC --max-message-size/-m:int! --global/-g",
        "POST {topic}/maxMessageSize?isGlobal={?global}",
        body="{max-message-size}",
    ),
    Command("remove-max-message-size", "TOPIC --global/-g", "DELETE {topic}/maxMessageSize?isGlobal={?global}"),
    Command(
        "get-subscription-dispatch-rate",
        "TOPIC -ap/--applied --global/-g --subscription/-s:string",
        run="topics:get_subscription_dispatch_rate",
    ),
    Command(
        "set-subscription-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp --global/-g --subscription/-s:string",
        run="topics:set_subscription_dispatch_rate",
    ),
    Command(
        "remove-subscription-dispatch-rate",
        "TOPIC --global/-g --subscription/-s:string",
        run="topics:remove_subscription_dispatch_rate",
    ),
    Command(
        "get-replicator-dispatch-rate",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/replicatorDispatchRate?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-replicator-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp --global/-g",
        "POST {topic}/replicatorDispatchRate?isGlobal={?global}",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
    ),
    Command("remove-replicator-dispatch-rate", "TOPIC --global/-g", "DELETE {topic}/replicatorDispatchRate?isGlobal={?global}"),
    Command("get-publish-rate", "TOPIC --global/-g", "GET {topic}/publishRate?isGlobal={?global}", output="json"),
    Command(
        "set-publish-rate",
        "TOPIC --msg-publish-rate/-m:int=-1 --byte-publish-rate/-b:long=-1 --global/-g",
        "POST {topic}/publishRate?isGlobal={?global}",
        body={"publishThrottlingRateInMsg": "{msg-publish-rate}", "publishThrottlingRateInByte": "{byte-publish-rate}"},
    ),
    Command("remove-publish-rate", "TOPIC --global/-g", "DELETE {topic}/publishRate?isGlobal={?global}"),
    Command(
        "get-subscribe-rate",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/subscribeRate?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-subscribe-rate",
        "TOPIC --subscribe-rate/-sr:int=-1 --subscribe-rate-period/-st:int=30 --global/-g",
        "POST {topic}/subscribeRate?isGlobal={?global}",
        body={"subscribeThrottlingRatePerConsumer": "{subscribe-rate}", "ratePeriodInSecond": "{subscribe-rate-period}"},
    ),
    Command("remove-subscribe-rate", "TOPIC --global/-g", "DELETE {topic}/subscribeRate?isGlobal={?global}"),
    Command(
        "get-max-consumers",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/maxConsumers?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-consumers",
        "TOPIC --max-consumers/-c:int! --global/-g",
        "POST {topic}/maxConsumers?isGlobal={?global}",
        body="{max-consumers}",
    ),
    Command("remove-max-consumers", "TOPIC --global/-g", "DELETE {topic}/maxConsumers?isGlobal={?global}"),
    Command(
        "get-dispatch-rate",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/dispatchRate?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp --global/-g",
        "POST {topic}/dispatchRate?isGlobal={?global}",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
    ),
    Command("remove-dispatch-rate", "TOPIC --global/-g", "DELETE {topic}/dispatchRate?isGlobal={?global}"),
    Command(
        "get-max-unacked-messages-per-subscription",
        "TOPIC -ap/--applied --global/-g",
        "GET {topic}/maxUnackedMessagesOnSubscription?applied={applied}&isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-unacked-messages-per-subscription",
        "TOPIC -m/--maxNum:int! --global/-g",
        "POST {topic}/maxUnackedMessagesOnSubscription?isGlobal={?global}",
        body="{maxNum}",
    ),
    Command(
        "remove-max-unacked-messages-per-subscription",
        "TOPIC --global/-g",
        "DELETE {topic}/maxUnackedMessagesOnSubscription?isGlobal={?global}",
    ),
    Command(
        "get-max-subscriptions-per-topic",
        "TOPIC --global/-g",
        "GET {topic}/maxSubscriptionsPerTopic?isGlobal={?global}",
        output="json",
    ),
    Command(
        "set-max-subscriptions-per-topic",
        "TOPIC --max-subscriptions-per-topic/-s:int! --global/-g",
        "POST {topic}/maxSubscriptionsPerTopic?isGlobal={?global}",
        body="{max-subscriptions-per-topic}",
    ),
    Command(
        "remove-max-subscriptions-per-topic", "TOPIC --global/-g", "DELETE {topic}/maxSubscriptionsPerTopic?isGlobal={?global}"
    ),
    Command("remove-schema-compatibility-strategy", "TOPIC", "DELETE {topic}/schemaCompatibilityStrategy"),
    Command(
        "set-schema-compatibility-strategy",
        "TOPIC "
        "--strategy/-s:choice(UNDEFINED|ALWAYS_INCOMPATIBLE|ALWAYS_COMPATIBLE|BACKWARD|FORWARD|FULL|BACKWARD_TRANSITIVE|FORWARD_TRANSITIVE|FULL_TRANSITIVE)!",
        "PUT {topic}/schemaCompatibilityStrategy",
        body="{strategy}",
    ),
    Command(
        "get-schema-compatibility-strategy",
        "TOPIC -ap/--applied",
        "GET {topic}/schemaCompatibilityStrategy?applied={applied}",
        output="plain",
    ),
)
