"""The groups of commands, where their tables are, and those of Apache's that have nothing to talk to here, with the reason."""

from typing import NamedTuple


class Group(NamedTuple):
    """`module` is in `cli.admin.tables`."""

    name: str
    module: str
    about: str
    hidden: bool = False


GROUPS = {
    group.name: group
    for group in (
        Group("tenants", "tenants", "Tenants: who may administer them, and in which clusters they are"),
        Group("namespaces", "namespaces", "Namespaces: their bundles, permissions and policies"),
        Group("topics", "topics", "Topics, partitioned topics and their subscriptions"),
        Group("topicPolicies", "topic_policies", "Policies of a topic, which go before those of its namespace"),
        Group("clusters", "clusters", "Clusters, their addresses and failure domains"),
        Group("brokers", "brokers", "Brokers: their list, their bundles, their dynamic configuration"),
        Group("broker-stats", "broker_stats", "Figures of a broker"),
        Group("bookies", "bookies", "Bookies and their racks"),
        Group("ns-isolation-policy", "isolation", "Which brokers may have which namespaces"),
        Group("resource-quotas", "resource_quotas", "Quotas of bundles, which load balancing looks at"),
        Group("schemas", "schemas", "Schemas of topics"),
        Group("transactions", "transactions", "Transactions and their coordinators"),
        Group("resourcegroups", "resource_groups", "Groups of namespaces that share rates"),
        Group("proxy-stats", "proxy_stats", "Figures of a proxy"),
        Group("persistent", "persistent", "The old names of `topics`", hidden=True),
        Group("non-persistent", "non_persistent", "The old names of `topics` for non-persistent ones", hidden=True),
    )
}

_NO_WORKER = "there is no functions worker in this cluster"
NOT_OFFERED = {
    "functions": _NO_WORKER,
    "functions-worker": _NO_WORKER,
    "sources": _NO_WORKER,
    "source": _NO_WORKER,
    "sinks": _NO_WORKER,
    "sink": _NO_WORKER,
    "packages": "there is no package store in this cluster",
    "documents": "the commands are described by --help and in docs/command-lines.md",
}
