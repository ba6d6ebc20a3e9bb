"""All commands on namespaces."""

from cli.admin.tables import namespace_policies, namespace_rates_and_limits, namespace_storage, namespaces_themselves

COMMANDS = (
    *namespaces_themselves.COMMANDS,
    *namespace_policies.COMMANDS,
    *namespace_storage.COMMANDS,
    *namespace_rates_and_limits.COMMANDS,
)
