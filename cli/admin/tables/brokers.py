"""Brokers and their dynamic configuration."""

from cli.admin.table import Command

COMMANDS = (
    Command("list", "CLUSTER", "GET brokers/{cluster}", output="lines"),
    Command("leader-broker", request="GET brokers/leaderBroker", output="json"),
    Command("namespaces", "CLUSTER -u/--url!", "GET brokers/{cluster}/{url}/ownedNamespaces", output="ownership"),
    Command("update-dynamic-config", "-c/--config! -v/--value!", "POST brokers/configuration/{config}/{value}"),
    Command("delete-dynamic-config", "-c/--config!", "DELETE brokers/configuration/{config}"),
    Command("list-dynamic-config", request="GET brokers/configuration", output="lines"),
    Command("get-all-dynamic-config", request="GET brokers/configuration/values", output="lines"),
    Command("get-internal-config", request="GET brokers/internal-configuration", output="json"),
    Command("get-runtime-config", request="GET brokers/configuration/runtime", output="map"),
    Command(
        "healthcheck", "-tv/--topic-version:choice(V1|V2)", "GET brokers/health?topicVersion={topic-version}", output="plain"
    ),
    Command("backlog-quota-check", request="GET brokers/backlog-quota-check", output="says:ok"),
    Command("version", request="GET brokers/version", output="plain"),
    Command(
        "shutdown",
        "--max-concurrent-unload-per-sec/-m:int=0 --forced-terminate-topic/-f",
        "POST brokers/shutdown?maxConcurrentUnloadPerSec={max-concurrent-unload-per-sec}"
        "&forcedTerminateTopic={forced-terminate-topic}",
        output="says:Successfully shutdown broker gracefully",
    ),
)
