"""The groups of commands, where their tables are, and those of Apache's that have nothing to talk to here, with the reason."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.admin.table import Command


class Group(NamedTuple):
    """Group of commands. `table` names a module of `cli.admin.tables` and the tuple of commands in it."""

    name: str
    table: str
    about: str
    hidden: bool = False

    def commands(self) -> "Sequence[Command]":
        """The commands; their module is imported only now, so that a call pays for its own group alone."""
        module, _, name = self.table.partition(":")
        found: Sequence[Command] = getattr(importlib.import_module(f"cli.admin.tables.{module}"), name)
        return found


GROUPS = {
    group.name: group
    for group in (
        Group("tenants", "tenants:TENANTS", "Tenants: who may administer them, and in which clusters they are"),
        Group("namespaces", "namespaces:COMMANDS", "Namespaces: their bundles, permissions and policies"),
        Group("topics", "topics:COMMANDS", "Topics, partitioned topics and their subscriptions"),
        Group("topicPolicies", "topic_policies:COMMANDS", "Policies of a topic, which go before those of its namespace"),
        Group("clusters", "clusters:CLUSTERS", "Clusters, their addresses and failure domains"),
        Group("brokers", "servers:BROKERS", "Brokers: their list, their bundles, their dynamic configuration"),
        Group("broker-stats", "servers:BROKER_STATS", "Figures of a broker"),
        Group("bookies", "servers:BOOKIES", "Bookies and their racks"),
        Group("ns-isolation-policy", "clusters:ISOLATION", "Which brokers may have which namespaces"),
        Group("resource-quotas", "tenants:RESOURCE_QUOTAS", "Quotas of bundles, which load balancing looks at"),
        Group("schemas", "topics:SCHEMAS", "Schemas of topics"),
        Group("transactions", "transactions:COMMANDS", "Transactions and their coordinators"),
        Group("resourcegroups", "tenants:RESOURCE_GROUPS", "Groups of namespaces that share rates"),
        Group("proxy-stats", "servers:PROXY_STATS", "Figures of a proxy"),
        Group("persistent", "old_names:PERSISTENT", "The old names of `topics`", hidden=True),
        Group("non-persistent", "old_names:NON_PERSISTENT", "The old names of `topics` for non-persistent ones", hidden=True),
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
