"""The old names of commands on topics: `persistent` and `non-persistent`."""

from cli.admin.table import Command

PERSISTENT = (
    Command("list", "NAMESPACE", run="topic_lists:list_topics"),
    Command("list-partitioned-topics", "NAMESPACE", run="topic_lists:list_partitioned"),
    Command("permissions", "TOPIC", "GET {topic}/permissions", output="map"),
    Command("grant-permission", "TOPIC --role! --actions:texts!", "POST {topic}/permissions/{role}", body="{actions}"),
    Command("revoke-permission", "TOPIC --role!", "DELETE {topic}/permissions/{role}"),
    Command("lookup", "TOPIC", "GET /lookup/v2/topic/{topic}", output="field:brokerUrl"),
    Command("bundle-range", "TOPIC", "GET /lookup/v2/topic/{topic}/bundle", output="plain"),
    Command("delete", "TOPIC --force", "DELETE {topic}?force={force}"),
    Command("unload", "TOPIC", "PUT {topic}/unload"),
    Command("truncate", "TOPIC", "DELETE {topic}/truncate"),
    Command("subscriptions", "TOPIC", "GET {topic}/subscriptions", output="lines"),
    Command("unsubscribe", "TOPIC -f/--force -s/--subscription!", "DELETE {topic}/subscription/{subscription}?force={force}"),
    Command(
        "create-subscription",
        "TOPIC -s/--subscription! --messageId/-m:string=latest --property/-p:pairs",
        run="topics:create_subscription",
    ),
    Command(
        "stats",
        "TOPIC -gpb/--get-precise-backlog",
        "GET {topic}/stats?getPreciseBacklog={get-precise-backlog}&subscriptionBacklogSize=false"
        "&getEarliestTimeInBacklog=false&excludePublishers=false&excludeConsumers=false",
        output="json",
    ),
    Command("stats-internal", "TOPIC -m/--metadata", "GET {topic}/internalStats?metadata={metadata}", output="json"),
    Command("info-internal", "TOPIC", "GET {topic}/internal-info", output="quoted"),
    Command(
        "partitioned-stats",
        "TOPIC --per-partition",
        "GET {topic}/partitioned-stats?perPartition={per-partition}&getPreciseBacklog=false"
        "&subscriptionBacklogSize=false&getEarliestTimeInBacklog=false&excludePublishers=false"
        "&excludeConsumers=false",
        output="json",
    ),
    Command("partitioned-stats-internal", "TOPIC", "GET {topic}/partitioned-internalStats", output="json"),
    Command("skip", "TOPIC -s/--subscription! -n/--count:long!", "POST {topic}/subscription/{subscription}/skip/{count}"),
    Command("skip-all", "TOPIC -s/--subscription!", "POST {topic}/subscription/{subscription}/skip_all"),
    Command(
        "expire-messages",
        "TOPIC -s/--subscription! -t/--expireTime:long!",
        "POST {topic}/subscription/{subscription}/expireMessages/{expireTime}",
    ),
    Command(
        "expire-messages-all-subscriptions",
        "TOPIC -t/--expireTime:long!",
        "POST {topic}/all_subscription/expireMessages/{expireTime}",
    ),
    Command(
        "create-partitioned-topic",
        "TOPIC -p/--partitions:int!",
        "PUT {topic}/partitions?createLocalTopicOnly=false",
        body="{partitions}",
    ),
    Command(
        "update-partitioned-topic",
        "TOPIC -p/--partitions:int!",
        "POST {topic}/partitions?updateLocalTopicOnly=false&force=false",
        body="{partitions}",
    ),
    Command("get-partitioned-topic-metadata", "TOPIC", "GET {topic}/partitions", output="json"),
    Command("delete-partitioned-topic", "TOPIC --force", "DELETE {topic}/partitions?force={force}"),
    Command("peek-messages", "TOPIC -s/--subscription! -n/--count:int=1", run="messages:peek"),
    Command("get-message-by-id", "TOPIC -l/--ledgerId:long! -e/--entryId:long!", run="messages:by_id"),
    Command("last-message-id", "TOPIC", "GET {topic}/lastMessageId", output="json"),
    Command("reset-cursor", "TOPIC -s/--subscription! --time/-t:millis --messageId/-m:string", run="topics:reset_cursor"),
    Command("terminate", "TOPIC", run="topics:terminate"),
    Command("compact", "TOPIC", "PUT {topic}/compaction", output="says:Topic compaction requested for {topic}"),
    Command("compaction-status", "TOPIC -w/--wait-complete", run="long_running:compaction_status"),
)
NON_PERSISTENT = (
    Command(
        "create-partitioned-topic", "TOPIC -p/--partitions:int!", "PUT {non-persistent-topic}/partitions", body="{partitions}"
    ),
    Command("lookup", "TOPIC", "GET /lookup/v2/topic/{topic}", output="field:brokerUrl"),
    Command("stats", "TOPIC", "GET {non-persistent-topic}/stats", output="json"),
    Command("stats-internal", "TOPIC", "GET {non-persistent-topic}/internalStats", output="json"),
    Command("get-partitioned-topic-metadata", "TOPIC", "GET {non-persistent-topic}/partitions", output="json"),
    Command("list", "NAMESPACE", "GET non-persistent/{namespace}", output="lines"),
    Command("list-in-bundle", "NAMESPACE -b/--bundle!", "GET non-persistent/{namespace}/{bundle}", output="lines"),
)
