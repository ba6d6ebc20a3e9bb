"""Tenants: what is not said keeps its value, or is every cluster for a new one."""

from urllib.parse import quote

from cli.admin.context import Context
from cli.admin.request import get, post, put


def create(context: Context) -> None:
    values = context.values
    clusters = values.get("allowed-clusters") or context.ask(get("clusters"))
    body = {"adminRoles": values.get("admin-roles") or [], "allowedClusters": clusters}
    context.ask(put(f"tenants/{quote(values['tenant'], safe='')}", body))


def update(context: Context) -> None:
    values = context.values
    path = f"tenants/{quote(values['tenant'], safe='')}"
    roles, clusters = values.get("admin-roles"), values.get("allowed-clusters")
    if roles is None or clusters is None:
        before = context.ask(get(path)) or {}
        roles = before.get("adminRoles", []) if roles is None else roles
        clusters = before.get("allowedClusters", []) if clusters is None else clusters
    context.ask(post(path, {"adminRoles": roles, "allowedClusters": clusters}))
