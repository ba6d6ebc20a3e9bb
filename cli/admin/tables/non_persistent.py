"""The old names of commands on non-persistent topics."""

from cli.admin.table import Command

COMMANDS = (
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
