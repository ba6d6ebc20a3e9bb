"""Tenants."""

from cli.admin.table import Command

COMMANDS = (
    Command("list", request="GET tenants", output="lines"),
    Command("get", "TENANT", "GET tenants/{tenant}", output="json"),
    Command("create", "TENANT --admin-roles/-r:list --allowed-clusters/-c:list", run="tenants:create"),
    Command("update", "TENANT --admin-roles/-r:list --allowed-clusters/-c:list", run="tenants:update"),
    Command("delete", "TENANT -f/--force", "DELETE tenants/{tenant}?force={force}"),
)
