"""Stats values as Apache's JSON: TopicStats, PartitionedTopicStats and what they hold. Pure.

A field goes by its name in camel case. What a feature would count that does not exist here is left out rather than made up, but
for the members that clients read without asking whether they are there; those are in `_ABSENT_...` with the value for "none".
"""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..topic.contract import Topic
from ..topic.stats import PublisherStats, SubscriberStats, SubscriptionStats, TopicStats

_ABSENT_IN_TOPIC: dict[str, Any] = {"replication": {}, "deduplicationStatus": "Disabled", "offloadedStorageSize": 0}
_ABSENT_IN_SUBSCRIPTION: dict[str, Any] = {
    "isReplicated": False,
    "msgDelayed": 0,
}
_SUMMED = ("msg_rate_in", "msg_throughput_in", "msg_rate_out", "msg_throughput_out", "bytes_in_counter", "msg_in_counter",
           "bytes_out_counter", "msg_out_counter", "storage_size", "backlog_size")  # fmt: skip
_SUMMED_OF_SUBSCRIPTION = ("msg_rate_out", "msg_throughput_out", "bytes_out_counter", "msg_out_counter", "msg_rate_redeliver",
                           "message_ack_rate", "msg_backlog", "backlog_size", "msg_in_replay", "unacked_messages")  # fmt: skip


def topic_stats_json(topic: Topic) -> dict[str, Any]:
    """TopicStats of one topic or partition."""
    return _topic(topic.stats())


def partitioned_stats_json(partitions: int, stats: Mapping[str, Mapping[str, Any]], *, per_partition: bool) -> dict[str, Any]:
    """PartitionedTopicStats: sums over the partitions' TopicStats, ours and other brokers', and each by itself if asked."""
    held = [one.get("subscriptions") or {} for one in stats.values()]
    names = sorted({name for one in held for name in one})
    subscriptions = {name: [one[name] for one in held if name in one] for name in names}
    sums = _sums(stats.values(), _SUMMED)
    count = sums["msgInCounter"]
    return {
        **sums,
        "averageMsgSize": sums["bytesInCounter"] / count if count else 0.0,
        "publishers": [],
        "subscriptions": {name: _merged(parts) for name, parts in subscriptions.items()},
        **_ABSENT_IN_TOPIC,
        "metadata": {"partitions": partitions, "deleted": False},
        "partitions": dict(stats) if per_partition else {},
    }


def _topic(stats: TopicStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("publishers", "subscriptions", "last_confirmed_position", "is_terminated"))
    body["publishers"] = [_publisher(one) for one in stats.publishers]
    body["subscriptions"] = {name: _subscription(one) for name, one in stats.subscriptions.items()}
    return body | _ABSENT_IN_TOPIC


def _subscription(stats: SubscriptionStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("consumers", "mark_delete_position"))
    body["consumers"] = [_consumer(one) for one in stats.consumers]
    body["msgBacklogNoDelayed"] = stats.msg_backlog
    body["durable"] = stats.is_durable
    return body | _ABSENT_IN_SUBSCRIPTION


def _merged(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    body, is_durable = _sums(parts, _SUMMED_OF_SUBSCRIPTION), bool(parts[0].get("durable", True))
    body |= {"type": parts[0].get("type"), "isDurable": is_durable, "durable": is_durable, "consumers": []}
    return body | {"msgBacklogNoDelayed": body["msgBacklog"]} | _ABSENT_IN_SUBSCRIPTION


def _publisher(stats: PublisherStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("connected_since_ms",))
    return body | {"connectedSince": _iso(stats.connected_since_ms), "supportsPartialProducer": False}


def _consumer(stats: SubscriberStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("connected_since_ms", "key_hash_ranges"))
    body["connectedSince"] = _iso(stats.connected_since_ms)
    body["keyHashRangeArrays"] = [list(one) for one in stats.key_hash_ranges]
    return body


def _sums(parts: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    parts = list(parts)
    return {_camel(name): _plain(name, sum(one.get(_camel(name)) or 0 for one in parts)) for name in names}


def _fields(stats: Any, leave_out: tuple[str, ...]) -> dict[str, Any]:
    """Plain fields under Apache's names; None is left out, as Jackson does."""
    found = {field.name: getattr(stats, field.name) for field in dataclasses.fields(stats) if field.name not in leave_out}
    return {
        _camel(name): dict(value) if isinstance(value, Mapping) else _plain(name, value)
        for name, value in found.items()
        if value is not None
    }


def _plain(name: str, value: Any) -> Any:
    """A sum of no rates is the int 0; a rate is a float, and 0.0 in JSON."""
    return float(value) if "_rate" in name or "_throughput" in name else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
