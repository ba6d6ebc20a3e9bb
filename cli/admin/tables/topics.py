"""Topics, partitioned topics, subscriptions, messages; `COMMANDS` has policies by their old names too. Schemas of topics."""

from cli.admin.table import Command
from cli.admin.tables import topic_policies_by_old_names, topic_rates_by_old_names

_THEMSELVES = (
    Command(
        "list",
        "NAMESPACE -td/--topic-domain:choice(persistent|non-persistent) -b/--bundle:string -ist/--include-system-topic",
        run="topic_lists:list_topics",
    ),
    Command("list-partitioned-topics", "NAMESPACE -ist/--include-system-topic", run="topic_lists:list_partitioned"),
    Command("permissions", "TOPIC", "GET {topic}/permissions", output="map"),
    Command("grant-permission", "TOPIC -r/--role! -a/--actions:list!", "POST {topic}/permissions/{role}", body="{actions}"),
    Command("revoke-permission", "TOPIC -r/--role!", "DELETE {topic}/permissions/{role}"),
    Command("lookup", "TOPIC", "GET /lookup/v2/topic/{topic}", output="field:brokerUrl"),
    Command("partitioned-lookup", "TOPIC -s/--sort-by-broker", run="topic_lists:partitioned_lookup"),
    Command("bundle-range", "TOPIC", "GET /lookup/v2/topic/{topic}/bundle", output="plain"),
    Command("delete", "TOPIC -f/--force -d/--deleteSchema -r/regex --from-file", run="topic_lists:delete"),
    Command("truncate", "TOPIC", "DELETE {topic}/truncate"),
    Command("unload", "TOPIC", "PUT {topic}/unload"),
    Command("subscriptions", "TOPIC", "GET {topic}/subscriptions", output="lines"),
    Command("unsubscribe", "TOPIC -f/--force -s/--subscription!", "DELETE {topic}/subscription/{subscription}?force={force}"),
    Command(
        "create-subscription",
        "TOPIC -s/--subscription! -m/--messageId:string=latest -r/--replicated --property/-p:pairs",
        run="topics:create_subscription",
    ),
    Command(
        "update-subscription-properties",
        "TOPIC -s/--subscription! --property/-p:pairs --clear/-c",
        run="topics:update_subscription_properties",
    ),
    Command(
        "get-subscription-properties",
        "TOPIC -s/--subscription!",
        "GET {topic}/subscription/{subscription}/properties",
        output="gson",
    ),
    Command(
        "stats",
        "TOPIC -gpb/--get-precise-backlog -sbs/--get-subscription-backlog-size -etb/--get-earliest-time-in-backlog",
        "GET {topic}/stats?getPreciseBacklog={get-precise-backlog}"
        "&subscriptionBacklogSize={!get-subscription-backlog-size}"
        "&getEarliestTimeInBacklog={get-earliest-time-in-backlog}&excludePublishers=false"
        "&excludeConsumers=false",
        output="json",
    ),
    Command("stats-internal", "TOPIC -m/--metadata", "GET {topic}/internalStats?metadata={metadata}", output="json"),
    Command("info-internal", "TOPIC", "GET {topic}/internal-info", output="gson-pretty"),
    Command(
        "partitioned-stats",
        "TOPIC --per-partition -gpb/--get-precise-backlog -sbs/--get-subscription-backlog-size "
        "-etb/--get-earliest-time-in-backlog",
        "GET {topic}/partitioned-stats?perPartition={per-partition}&getPreciseBacklog={get-precise-backlog}"
        "&subscriptionBacklogSize={!get-subscription-backlog-size}"
        "&getEarliestTimeInBacklog={get-earliest-time-in-backlog}&excludePublishers=false"
        "&excludeConsumers=false",
        output="json",
    ),
    Command("partitioned-stats-internal", "TOPIC", "GET {topic}/partitioned-internalStats", output="json"),
    Command("skip", "TOPIC -s/--subscription! -n/--count:long!", "POST {topic}/subscription/{subscription}/skip/{count}"),
    Command("clear-backlog", "TOPIC -s/--subscription!", "POST {topic}/subscription/{subscription}/skip_all"),
    Command(
        "expire-messages",
        "TOPIC -s/--subscription! -t/--expireTime:long=-1 --position/-p:string -e/--exclude-reset-position",
        run="topics:expire_messages",
    ),
    Command(
        "expire-messages-all-subscriptions",
        "TOPIC -t/--expireTime:long!",
        "POST {topic}/all_subscription/expireMessages/{expireTime}",
    ),
    Command(
        "create-partitioned-topic",
        "TOPIC -p/--partitions:int! --metadata/-m:texts",
        run="topics:create_partitioned_topic",
    ),
    Command("create-missed-partitions", "TOPIC", "POST {topic}/createMissedPartitions"),
    Command("create", "TOPIC --metadata/-m:texts", run="topics:create_topic"),
    Command(
        "update-partitioned-topic",
        "TOPIC -p/--partitions:int! -ulo/--update-local-only -f/--force",
        "POST {topic}/partitions?updateLocalTopicOnly={update-local-only}&force={force}",
        body="{partitions}",
    ),
    Command("get-partitioned-topic-metadata", "TOPIC", "GET {topic}/partitions", output="json"),
    Command("get-properties", "TOPIC", "GET {topic}/properties", output="map"),
    Command("update-properties", "TOPIC --property/-p:pairs=", "PUT {topic}/properties", body="{property}"),
    Command("remove-properties", "TOPIC --key/-k:string", "DELETE {topic}/properties?key={key}"),
    Command(
        "delete-partitioned-topic",
        "TOPIC -f/--force -d/--deleteSchema",
        "DELETE {topic}/partitions?force={force}&deleteSchema=true",
    ),
    Command(
        "peek-messages",
        "TOPIC -s/--subscription! -n/--count:int=1 -ssm/--show-server-marker "
        "-til/--transaction-isolation-level:choice(READ_COMMITTED|READ_UNCOMMITTED)=READ_COMMITTED",
        run="messages:peek",
    ),
    Command(
        "examine-messages",
        "TOPIC -i/--initialPosition:string=latest -m/--messagePosition:long=1",
        run="messages:examine",
    ),
    Command("get-message-by-id", "TOPIC -l/--ledgerId:long! -e/--entryId:long!", run="messages:by_id"),
    Command("get-message-id", "TOPIC -d/--datetime!", run="topics:message_id_at"),
    Command(
        "reset-cursor",
        "TOPIC -s/--subscription! --time/-t:millis --messageId/-m:string -e/--exclude-reset-position",
        run="topics:reset_cursor",
    ),
    Command("terminate", "TOPIC", run="topics:terminate"),
    Command("partitioned-terminate", "TOPIC", run="topics:terminate_partitions"),
    Command("compact", "TOPIC", "PUT {topic}/compaction", output="says:Topic compaction requested for {topic}"),
    Command("compaction-status", "TOPIC -w/--wait-complete", run="long_running:compaction_status"),
    Command("offload", "TOPIC -s/--size-threshold:bytes!", run="long_running:offload"),
    Command("offload-status", "TOPIC -w/--wait-complete", run="long_running:offload_status"),
    Command("last-message-id", "TOPIC", "GET {topic}/lastMessageId", output="json"),
    Command("get-retention", "TOPIC -ap/--applied", "GET {topic}/retention?applied={applied}", output="json"),
    Command(
        "set-replicated-subscription-status",
        "TOPIC -s/--subscription! --enable/-e --disable/-d",
        "POST {topic}/subscription/{subscription}/replicatedSubscriptionStatus",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command(
        "get-replicated-subscription-status",
        "TOPIC -s/--subscription!",
        "GET {topic}/subscription/{subscription}/replicatedSubscriptionStatus",
        output="json",
    ),
    Command("get-backlog-size", "TOPIC --messageId/-m:string=-1:-1", run="topics:backlog_size"),
    Command("analyze-backlog", "TOPIC -s/--subscription! --position/-p:string", run="topics:analyze_backlog"),
    Command("get-replication-clusters", "TOPIC -ap/--applied", "GET {topic}/replication?applied={applied}", output="json"),
    Command("set-replication-clusters", "TOPIC --clusters/-c:list!", "POST {topic}/replication", body="{clusters}"),
    Command("remove-replication-clusters", "TOPIC", "DELETE {topic}/replication"),
    Command("get-shadow-topics", "TOPIC", "GET {topic}/shadowTopics", output="json"),
    Command("set-shadow-topics", "TOPIC --topics/-t:list!", "PUT {topic}/shadowTopics", body="{topics}"),
    Command("remove-shadow-topics", "TOPIC", "DELETE {topic}/shadowTopics"),
    Command("create-shadow-topic", "TOPIC --source/-s! --properties/-p:pairlist", run="topics:create_shadow_topic"),
    Command("get-shadow-source", "TOPIC", run="topics:shadow_source"),
    Command(
        "get-schema-validation-enforce",
        "TOPIC -ap/--applied",
        "GET {topic}/schemaValidationEnforced?applied={applied}",
        output="json",
    ),
    Command("set-schema-validation-enforce", "TOPIC --enable/-e", "POST {topic}/schemaValidationEnforced", body="{enable}"),
    Command("trim-topic", "TOPIC", "POST {topic}/trim"),
)
COMMANDS = (*_THEMSELVES, *topic_policies_by_old_names.COMMANDS, *topic_rates_by_old_names.COMMANDS)
SCHEMAS = (
    Command("get", "TOPIC -v/--version:long -a/--all-version", run="schemas:get"),
    Command("delete", "TOPIC -f/--force", "DELETE schemas/{bare-topic}/schema?force={force}"),
    Command("upload", "TOPIC -f/--filename!", run="schemas:upload"),
    Command(
        "extract",
        "TOPIC -j/--jar! -t/--type! -c/--classname! -a/--always-allow-null:bool=true -n/--dry-run",
        run="schemas:extract",
    ),
    Command("metadata", "TOPIC", "GET schemas/{bare-topic}/metadata", output="json"),
    Command("compatibility", "TOPIC -f/--filename!", run="schemas:compatibility"),
)
