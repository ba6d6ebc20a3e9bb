"""Servers: brokers, their figures, bookies with their racks, and proxies."""

from cli.admin.table import Command

BROKERS = (
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
BROKER_STATS = (
    Command("monitoring-metrics", "-i/--indent", "GET broker-stats/metrics", output="gson-each"),
    Command("mbeans", "-i/--indent", "GET broker-stats/mbeans", output="gson"),
    Command("topics", "-i/--indent", "GET broker-stats/topics", output="gson", aliases=("destinations",)),
    Command("allocator-stats", "ALLOCATOR", "GET broker-stats/allocator-stats/{allocator}", output="json"),
    Command("load-report", request="GET broker-stats/load-report", output="json"),
)
BOOKIES = (
    Command("racks-placement", request="GET bookies/racks-info", output="json"),
    Command("list-bookies", request="GET bookies/all", output="json"),
    Command("get-bookie-rack", "-b/--bookie!", "GET bookies/racks-info/{bookie}", output="json"),
    Command("delete-bookie-rack", "-b/--bookie!", "DELETE bookies/racks-info/{bookie}"),
    Command(
        "set-bookie-rack",
        "-g/--group:string=default -b/--bookie! -r/--rack! -hn/--hostname:string",
        "POST bookies/racks-info/{bookie}?group={group}",
        body={"rack": "{rack}", "hostname": "{hostname}"},
    ),
)
PROXY_STATS = (
    Command("connections", "-i/--indent", "GET /proxy-stats/connections", output="json"),
    Command("topics", "-i/--indent", "GET /proxy-stats/topics", output="json"),
)
