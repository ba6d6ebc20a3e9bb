"""Backlog quotas: of a namespace, or of a topic; by size or by age of the oldest message."""

from cli.admin.arguments import WrongUsage
from cli.admin.context import Context
from cli.admin.request import namespace_name, post, topic_name

POLICIES = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
NEEDS = {"destination_storage": ("limit", "size"), "message_age": ("limitTime", "time")}


def of_namespace(context: Context) -> None:
    _set(context, f"namespaces/{namespace_name(context.values['namespace'])}", "")


def of_topic(context: Context) -> None:
    _set(context, topic_name(context.values["topic"]).path, "&isGlobal=true" if context.values.get("global") else "")


def _set(context: Context, path: str, query: str) -> None:
    values = context.values
    policy, kind = values["policy"], values["type"]
    if policy not in POLICIES:
        raise WrongUsage(f"Invalid retention policy type '{policy}'. Valid options are: [{', '.join(POLICIES)}]")
    if kind not in NEEDS:
        raise WrongUsage(f"Invalid backlog quota type '{kind}'. Valid options are: [{', '.join(NEEDS)}]")
    key, what = NEEDS[kind]
    if key not in values:
        raise WrongUsage(f"Quota type of '{kind}' needs a {what} limit")
    size, seconds = (values[key], -1) if key == "limit" else (-1, values[key])
    body = {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}
    context.ask(post(f"{path}/backlogQuota?backlogQuotaType={kind}{query}", body))
