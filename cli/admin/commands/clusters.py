"""Clusters, tenants and namespaces: the commands that ask more than once, or whose request depends on what is given."""

import json
import sys
from typing import Any
from urllib.parse import quote

from cli.admin.arguments import WrongUsage
from cli.admin.context import CommandFailed, Context
from cli.admin.request import ADMIN, DOMAINS, Request, get, namespace_name, post, put, topic_name
from cli.admin.request import delete as deletion

MINUTE_MS = 60_000
EMPTY_POLICIES: dict[str, Any] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": [],
}
_QUOTA_POLICIES = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
_QUOTA_LIMITS = {"destination_storage": ("limit", "size"), "message_age": ("limitTime", "time")}


def list_clusters(context: Context) -> None:
    """With --current, the one of the server that was asked is marked."""
    clusters = context.ask(get("clusters")) or []
    here = (context.ask(get("brokers/configuration/runtime")) or {}).get("clusterName")
    for name in clusters:
        context.write(f"{name}(*)" if context.values["current"] and name == here else str(name))


def delete(context: Context) -> None:
    """With --all, everything of every tenant goes before."""
    if context.values["all"]:
        for tenant in context.ask(get("tenants")):
            for namespace in context.ask(get(f"namespaces/{tenant}")):
                _delete_namespace(context, namespace)
            context.ask(deletion(f"tenants/{tenant}?force=false"))
    context.ask(deletion(f"clusters/{quote(context.values['cluster'], safe='')}"))


def _delete_namespace(context: Context, namespace: str) -> None:
    for ending, removed in (("/partitioned", "/partitions"), ("", "")):
        for domain in DOMAINS:
            for name in context.ask(get(f"{domain}/{namespace}{ending}?includeSystemTopic=false")):
                local = quote(str(name).split("/", 4)[4], safe="")
                context.ask(deletion(f"{domain}/{namespace}/{local}{removed}?force=true&deleteSchema=true"))
    context.ask(deletion(f"namespaces/{namespace}?force=true"))


def list_namespaces_of_cluster(context: Context) -> None:
    raise CommandFailed("Parameter format is incorrect: namespaces with a cluster in their name are not offered here")


def create_namespace(context: Context) -> None:
    values = context.values
    bundles = values["bundles"]
    if not 0 <= bundles < 1 << 32:
        raise WrongUsage(f"Invalid number of bundles. Number of bundles has to be in the range of (0, 2^32], not {bundles}")
    body = {**EMPTY_POLICIES, "replication_clusters": values.get("clusters") or []}
    if bundles:
        body["bundles"] = {"numBundles": bundles}
    context.ask(put(f"namespaces/{namespace_name(values['namespace'])}", body))


def _namespace(context: Context) -> str:
    return f"namespaces/{namespace_name(context.values['namespace'])}"


def clear_backlog(context: Context) -> None:
    """Asks on the terminal first, without --force."""
    values = context.values
    if not values["force"] and not _confirmed(
        f"Are you sure you want to clear the backlog of {values['namespace']}? (Y or N) "
    ):
        return
    parts = [_namespace(context), values.get("bundle"), "clearBacklog", values.get("sub")]
    context.ask(post("/".join(quote(part, safe="/") for part in parts if part)))


def _confirmed(question: str) -> bool:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().upper() == "Y"


def split_bundle(context: Context) -> None:
    values = context.values
    bundle, kind = values.get("bundle"), values.get("bundle-type")
    if not bundle and not kind:
        raise WrongUsage("Must pass one of the params: --bundle / --bundle-type")
    query = f"?unload={str(values['unload']).lower()}"
    if values.get("split-algorithm-name"):
        query += f"&splitAlgorithmName={quote(values['split-algorithm-name'], safe='')}"
    boundaries = _longs(values.get("split-boundaries") or [])
    body = json.dumps(boundaries, separators=(",", ":")).encode() if boundaries else b""
    context.ask(Request("PUT", f"{ADMIN}{_namespace(context)}/{quote(str(bundle or kind), safe='')}/split{query}", body))


def _longs(texts: list[str]) -> list[int]:
    try:
        return [int(text) for text in texts]
    except ValueError as error:
        raise WrongUsage(f"Invalid value for option '--split-boundaries': {error}") from None


def topic_positions(context: Context) -> None:
    from cli.admin.output import pretty

    bundle, topics = context.values.get("bundle"), context.values.get("topic-list")
    if not bundle:
        raise WrongUsage("Must pass one of the params: --bundle ")
    query = "?" + "&".join(f"topics={quote(topic, safe='')}" for topic in topics) if topics else ""
    context.write(pretty(context.ask(get(f"{_namespace(context)}/{quote(bundle, safe='')}/topicHashPositions{query}"))))


def get_offload_threshold(context: Context) -> None:
    for name, path in (("Bytes", "offloadThreshold"), ("Seconds", "offloadThresholdInSeconds")):
        context.write(f"offloadThresholdIn{name}: {context.ask(get(f'{_namespace(context)}/{path}'))}")


def set_offload_threshold(context: Context) -> None:
    context.ask(put(f"{_namespace(context)}/offloadThreshold", context.values["size"]))
    context.ask(put(f"{_namespace(context)}/offloadThresholdInSeconds", context.values["time"]))


def get_offload_deletion_lag(context: Context) -> None:
    lag = context.ask(get(f"{_namespace(context)}/offloadDeletionLagMs"))
    context.write("Unset for namespace. Defaulting to broker setting." if lag is None else f"{int(lag) // MINUTE_MS} minute(s)")


_STRATEGIES = {
    "FULL": "Full",
    "BACKWARD": "Backward",
    "FORWARD": "Forward",
    "ALWAYSCOMPATIBLE": "AlwaysCompatible",
    "BACKWARDTRANSITIVE": "BackwardTransitive",
    "FORWARDTRANSITIVE": "ForwardTransitive",
    "FULLTRANSITIVE": "FullTransitive",
    "AUTOUPDATEDISABLED": "AutoUpdateDisabled",
}


def set_schema_autoupdate_strategy(context: Context) -> None:
    name = "AUTOUPDATEDISABLED" if context.values["disabled"] else (context.values.get("compatibility") or "").upper()
    if not name:
        raise WrongUsage("Either --compatibility or --disabled must be specified")
    if name not in _STRATEGIES:
        raise WrongUsage(f"Unknown strategy '{name}', possible values: {', '.join(_STRATEGIES)}")
    context.ask(put(f"{_namespace(context)}/schemaAutoUpdateCompatibilityStrategy", _STRATEGIES[name]))


def create_tenant(context: Context) -> None:
    """Creates the tenant, in every cluster where none is given."""
    values = context.values
    clusters = values.get("allowed-clusters") or context.ask(get("clusters"))
    body = {"adminRoles": values.get("admin-roles") or [], "allowedClusters": clusters}
    context.ask(put(f"tenants/{quote(values['tenant'], safe='')}", body))


def update_tenant(context: Context) -> None:
    """Updates the tenant; an option that is not given keeps its value."""
    values = context.values
    path = f"tenants/{quote(values['tenant'], safe='')}"
    roles, clusters = values.get("admin-roles"), values.get("allowed-clusters")
    if roles is None or clusters is None:
        before = context.ask(get(path)) or {}
        roles = before.get("adminRoles", []) if roles is None else roles
        clusters = before.get("allowedClusters", []) if clusters is None else clusters
    context.ask(post(path, {"adminRoles": roles, "allowedClusters": clusters}))


def set_namespace_backlog_quota(context: Context) -> None:
    _set_backlog_quota(context, f"namespaces/{namespace_name(context.values['namespace'])}", "")


def set_topic_backlog_quota(context: Context) -> None:
    _set_backlog_quota(
        context, topic_name(context.values["topic"]).path, "&isGlobal=true" if context.values.get("global") else ""
    )


def _set_backlog_quota(context: Context, path: str, query: str) -> None:
    values = context.values
    policy, kind = values["policy"], values["type"]
    if policy not in _QUOTA_POLICIES:
        raise WrongUsage(f"Invalid retention policy type '{policy}'. Valid options are: [{', '.join(_QUOTA_POLICIES)}]")
    if kind not in _QUOTA_LIMITS:
        raise WrongUsage(f"Invalid backlog quota type '{kind}'. Valid options are: [{', '.join(_QUOTA_LIMITS)}]")
    key, what = _QUOTA_LIMITS[kind]
    if key not in values:
        raise WrongUsage(f"Quota type of '{kind}' needs a {what} limit")
    size, seconds = (values[key], -1) if key == "limit" else (-1, values[key])
    body = {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}
    context.ask(post(f"{path}/backlogQuota?backlogQuotaType={kind}{query}", body))
