"""Topics and subscriptions: the commands whose request depends on which of their options are given."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from cli.admin.arguments import WrongUsage
from cli.admin.commands.message_ids import message_id, reset_to
from cli.admin.context import CommandFailed, Context
from cli.admin.output import plain, pretty
from cli.admin.request import ADMIN, Request, delete, get, post, put, topic_name

SHADOW_SOURCE = "PULSAR.SHADOW_SOURCE"
MANY_PARTITIONS = "application/vnd.partitioned-topic-metadata+json"


def _topic(context: Context) -> str:
    return topic_name(context.values["topic"]).path


def _subscription(context: Context) -> str:
    return f"{_topic(context)}/subscription/{quote(context.values['subscription'], safe='')}"


def _pairs(texts: list[str] | None) -> dict[str, str]:
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise WrongUsage(f"Invalid key value pair '{text}', valid format like 'a=b'.")
        found[key] = value
    return found


def create_topic(context: Context) -> None:
    context.ask(put(_topic(context), _pairs(context.values.get("metadata"))))


def create_partitioned_topic(context: Context) -> None:
    values = context.values
    if values["partitions"] < 1:
        raise CommandFailed("Number of partitions should be more than 0")
    path = f"{ADMIN}{_topic(context)}/partitions?createLocalTopicOnly=false"
    properties = _pairs(values.get("metadata"))
    if properties:
        body = {"partitions": values["partitions"], "deleted": False, "properties": properties}
        context.ask(Request("PUT", path, json.dumps(body, separators=(",", ":")).encode(), MANY_PARTITIONS))
        return
    context.ask(Request("PUT", path, str(values["partitions"]).encode()))


def create_shadow_topic(context: Context) -> None:
    values = context.values
    source = topic_name(values["source"])
    count = (context.ask(get(f"{source.path}/partitions")) or {}).get("partitions", 0)
    properties = {**(values.get("properties") or {}), SHADOW_SOURCE: str(source)}
    if count:
        body = {"partitions": count, "deleted": False, "properties": properties}
        path = f"{ADMIN}{_topic(context)}/partitions?createLocalTopicOnly=false"
        context.ask(Request("PUT", path, json.dumps(body, separators=(",", ":")).encode(), MANY_PARTITIONS))
        return
    context.ask(put(_topic(context), properties))


def shadow_source(context: Context) -> None:
    context.write(plain((context.ask(get(f"{_topic(context)}/properties")) or {}).get(SHADOW_SOURCE)))


def create_subscription(context: Context) -> None:
    values = context.values
    at: Mapping[str, Any] = message_id(values["messageId"])
    properties = values.get("property")
    if properties:
        at = {**reset_to(values["messageId"], False), "properties": properties}
    replicated = str(bool(values.get("replicated"))).lower()
    context.ask(put(f"{_subscription(context)}?replicated={replicated}", at))


def update_subscription_properties(context: Context) -> None:
    properties = context.values.get("property") or {}
    if properties and context.values["clear"]:
        raise CommandFailed("If you set --clear then you should not pass any properties")
    if not properties and not context.values["clear"]:
        raise CommandFailed("If you want to clear the properties you have to use --clear")
    context.ask(put(f"{_subscription(context)}/properties", properties))


def expire_messages(context: Context) -> None:
    values = context.values
    seconds, at = values.get("expireTime", -1), values.get("position")
    if at and seconds >= 0:
        raise WrongUsage("Can't expire message by time and by message position at the same time.")
    if not at and seconds < 0:
        raise WrongUsage("Either time (--expireTime) or message position (--position) has to be provided to expire messages")
    path = f"{_subscription(context)}/expireMessages"
    if at:
        context.ask(post(path, reset_to(at, bool(values.get("exclude-reset-position")))))
    else:
        context.ask(post(f"{path}/{seconds}"))


def reset_cursor(context: Context) -> None:
    values = context.values
    path = f"{_subscription(context)}/resetcursor"
    if values.get("messageId"):
        context.ask(post(path, reset_to(values["messageId"], bool(values.get("exclude-reset-position")))))
    elif values.get("time") is not None:
        context.ask(post(f"{path}/{time.time_ns() // 1_000_000 - values['time']}"))
    else:
        raise CommandFailed("Either Timestamp (--time) or messageId (--messageId) has to be provided to reset cursor")


def terminate(context: Context) -> None:
    last = context.ask(post(f"{_topic(context)}/terminate"))
    context.write(f"Topic successfully terminated at {_place(last)}")


def terminate_partitions(context: Context) -> None:
    topic = topic_name(context.values["topic"])
    for index, last in sorted((context.ask(post(f"{topic.path}/terminate/partitions")) or {}).items()):
        context.write(f"Topic {topic.partition(int(index))} successfully terminated at {_place(last)}")


def _place(last: Mapping[str, Any]) -> str:
    return f"{last['ledgerId']}:{last['entryId']}:{last.get('partitionIndex', -1)}"


def backlog_size(context: Context) -> None:
    context.write(plain(context.ask(put(f"{_topic(context)}/backlogSize", message_id(context.values["messageId"])))))


def analyze_backlog(context: Context) -> None:
    at = context.values.get("position")
    path = f"{_subscription(context)}/analyzeBacklog"
    request = post(path, reset_to(at, False)) if at else Request("POST", ADMIN + path)
    context.write(pretty(context.ask(request)))


def message_id_at(context: Context) -> None:
    """Prints the id of the first message that was published at this time or later."""
    try:
        moment = datetime.fromisoformat(context.values["datetime"])
    except ValueError:
        raise WrongUsage(f"--datetime {context.values['datetime']}: expected a time such as 2021-06-28T16:53:08Z") from None
    milliseconds = round(moment.timestamp() * 1000)
    context.write(pretty(context.ask(get(f"{_topic(context)}/messageid/{milliseconds}"))))


def _of_subscription(context: Context) -> str:
    """The dispatch rate of every subscription of the topic, or of one of them."""
    one = context.values.get("subscription")
    return f"{_topic(context)}/{quote(one, safe='')}/dispatchRate" if one else f"{_topic(context)}/subscriptionDispatchRate"


def _global(context: Context, before: str = "?") -> str:
    return f"{before}isGlobal=true" if context.values.get("global") else ""


def get_subscription_dispatch_rate(context: Context) -> None:
    applied = str(context.values["applied"]).lower()
    context.write(pretty(context.ask(get(f"{_of_subscription(context)}?applied={applied}{_global(context, '&')}"))))


def set_subscription_dispatch_rate(context: Context) -> None:
    values = context.values
    rate = {
        "dispatchThrottlingRateInMsg": values["msg-dispatch-rate"],
        "dispatchThrottlingRateInByte": values["byte-dispatch-rate"],
        "relativeToPublishRate": values["relative-to-publish-rate"],
        "ratePeriodInSecond": values["dispatch-rate-period"],
    }
    context.ask(post(f"{_of_subscription(context)}{_global(context)}", rate))


def remove_subscription_dispatch_rate(context: Context) -> None:
    context.ask(delete(f"{_of_subscription(context)}{_global(context)}"))
