"""Rates and limits of a topic under `topics`, where they were before `topicPolicies`."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "get-dispatch-rate", "TOPIC -ap/--applied", "GET {topic}/dispatchRate?applied={applied}", output="json", hidden=True
    ),
    Command(
        "set-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp",
        "POST {topic}/dispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
        hidden=True,
    ),
    Command("remove-dispatch-rate", "TOPIC", "DELETE {topic}/dispatchRate", hidden=True),
    Command(
        "get-subscription-dispatch-rate",
        "TOPIC -ap/--applied",
        "GET {topic}/subscriptionDispatchRate?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-subscription-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp",
        "POST {topic}/subscriptionDispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
        hidden=True,
    ),
    Command("remove-subscription-dispatch-rate", "TOPIC", "DELETE {topic}/subscriptionDispatchRate", hidden=True),
    Command(
        "get-replicator-dispatch-rate",
        "TOPIC -ap/--applied",
        "GET {topic}/replicatorDispatchRate?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-replicator-dispatch-rate",
        "TOPIC --msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
        "--dispatch-rate-period/-dt:int=1 --relative-to-publish-rate/-rp",
        "POST {topic}/replicatorDispatchRate",
        body={
            "dispatchThrottlingRateInMsg": "{msg-dispatch-rate}",
            "dispatchThrottlingRateInByte": "{byte-dispatch-rate}",
            "relativeToPublishRate": "{relative-to-publish-rate}",
            "ratePeriodInSecond": "{dispatch-rate-period}",
        },
        hidden=True,
    ),
    Command("remove-replicator-dispatch-rate", "TOPIC", "DELETE {topic}/replicatorDispatchRate", hidden=True),
    Command(
        "get-max-unacked-messages-on-consumer",
        "TOPIC -ap/--applied",
        "GET {topic}/maxUnackedMessagesOnConsumer?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-max-unacked-messages-on-consumer",
        "TOPIC -m/--maxNum:int!",
        "POST {topic}/maxUnackedMessagesOnConsumer",
        body="{maxNum}",
        hidden=True,
    ),
    Command("remove-max-unacked-messages-on-consumer", "TOPIC", "DELETE {topic}/maxUnackedMessagesOnConsumer", hidden=True),
    Command(
        "get-max-unacked-messages-on-subscription",
        "TOPIC -ap/--applied",
        "GET {topic}/maxUnackedMessagesOnSubscription?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-max-unacked-messages-on-subscription",
        "TOPIC -m/--maxNum:int!",
        "POST {topic}/maxUnackedMessagesOnSubscription",
        body="{maxNum}",
        hidden=True,
    ),
    Command(
        "remove-max-unacked-messages-on-subscription", "TOPIC", "DELETE {topic}/maxUnackedMessagesOnSubscription", hidden=True
    ),
    Command(
        "get-max-unacked-messages-per-consumer",
        "TOPIC -ap/--applied",
        "GET {topic}/maxUnackedMessagesOnConsumer?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-max-unacked-messages-per-consumer",
        "TOPIC -m/--maxNum:int!",
        "POST {topic}/maxUnackedMessagesOnConsumer",
        body="{maxNum}",
        hidden=True,
    ),
    Command("remove-max-unacked-messages-per-consumer", "TOPIC", "DELETE {topic}/maxUnackedMessagesOnConsumer", hidden=True),
    Command(
        "get-max-unacked-messages-per-subscription",
        "TOPIC -ap/--applied",
        "GET {topic}/maxUnackedMessagesOnSubscription?applied={applied}",
        output="json",
        hidden=True,
    ),
    Command(
        "set-max-unacked-messages-per-subscription",
        "TOPIC -m/--maxNum:int!",
        "POST {topic}/maxUnackedMessagesOnSubscription",
        body="{maxNum}",
        hidden=True,
    ),
    Command(
        "remove-max-unacked-messages-per-subscription", "TOPIC", "DELETE {topic}/maxUnackedMessagesOnSubscription", hidden=True
    ),
    Command("get-publish-rate", "TOPIC", "GET {topic}/publishRate", output="json", hidden=True),
    Command(
        "set-publish-rate",
        "TOPIC --msg-publish-rate/-m:int=-1 --byte-publish-rate/-b:long=-1",
        "POST {topic}/publishRate",
        body={"publishThrottlingRateInMsg": "{msg-publish-rate}", "publishThrottlingRateInByte": "{byte-publish-rate}"},
        hidden=True,
    ),
    Command("remove-publish-rate", "TOPIC", "DELETE {topic}/publishRate", hidden=True),
    Command(
        "get-maxProducers", "TOPIC -ap/--applied", "GET {topic}/maxProducers?applied={applied}", output="json", hidden=True
    ),
    Command(
        "set-maxProducers", "TOPIC --max-producers/-p:int!", "POST {topic}/maxProducers", body="{max-producers}", hidden=True
    ),
    Command("remove-maxProducers", "TOPIC", "DELETE {topic}/maxProducers", hidden=True),
    Command(
        "get-max-producers", "TOPIC -ap/--applied", "GET {topic}/maxProducers?applied={applied}", output="json", hidden=True
    ),
    Command(
        "set-max-producers", "TOPIC --max-producers/-p:int!", "POST {topic}/maxProducers", body="{max-producers}", hidden=True
    ),
    Command("remove-max-producers", "TOPIC", "DELETE {topic}/maxProducers", hidden=True),
    Command("get-max-subscriptions", "TOPIC", "GET {topic}/maxSubscriptionsPerTopic", output="json", hidden=True),
    Command(
        "set-max-subscriptions",
        "TOPIC --max-subscriptions-per-topic/-m:int!",
        "POST {topic}/maxSubscriptionsPerTopic",
        body="{max-subscriptions-per-topic}",
        hidden=True,
    ),
    Command("remove-max-subscriptions", "TOPIC", "DELETE {topic}/maxSubscriptionsPerTopic", hidden=True),
    Command("get-max-message-size", "TOPIC", "GET {topic}/maxMessageSize", output="json", hidden=True),
    Command(
        "set-max-message-size",
        "TOPIC --max-message-size/-m:int!",
        "POST {topic}/maxMessageSize",
        body="{max-message-size}",
        hidden=True,
    ),
    Command("remove-max-message-size", "TOPIC", "DELETE {topic}/maxMessageSize", hidden=True),
    Command(
        "get-max-consumers-per-subscription", "TOPIC", "GET {topic}/maxConsumersPerSubscription", output="json", hidden=True
    ),
    Command(
        "set-max-consumers-per-subscription",
        "TOPIC --max-consumers-per-subscription/-c:int!",
        "POST {topic}/maxConsumersPerSubscription",
        body="{max-consumers-per-subscription}",
        hidden=True,
    ),
    Command("remove-max-consumers-per-subscription", "TOPIC", "DELETE {topic}/maxConsumersPerSubscription", hidden=True),
    Command(
        "get-max-consumers", "TOPIC -ap/--applied", "GET {topic}/maxConsumers?applied={applied}", output="json", hidden=True
    ),
    Command(
        "set-max-consumers", "TOPIC --max-consumers/-c:int!", "POST {topic}/maxConsumers", body="{max-consumers}", hidden=True
    ),
    Command("remove-max-consumers", "TOPIC", "DELETE {topic}/maxConsumers", hidden=True),
    Command(
        "get-subscribe-rate", "TOPIC -ap/--applied", "GET {topic}/subscribeRate?applied={applied}", output="json", hidden=True
    ),
    Command(
        "set-subscribe-rate",
        "TOPIC --subscribe-rate/-sr:int=-1 --subscribe-rate-period/-st:int=30",
        "POST {topic}/subscribeRate",
        body={"subscribeThrottlingRatePerConsumer": "{subscribe-rate}", "ratePeriodInSecond": "{subscribe-rate-period}"},
        hidden=True,
    ),
    Command("remove-subscribe-rate", "TOPIC", "DELETE {topic}/subscribeRate", hidden=True),
)
