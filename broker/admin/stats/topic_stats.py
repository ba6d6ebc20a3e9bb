"""Stats values as Apache's JSON: TopicStats, PartitionedTopicStats and their members. A field has its name in camel case.
Counts of features that do not exist here have Apache's value for none (`_..._NEUTRAL`), so that every member of Apache's is
there.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from managed_ledger.contract import ManagedCursor
from ports.logs import line
from ports.loop.slices import in_slices

from ...errors import BrokerError
from ...service.addresses import Advertised, broker_id
from ...topic.contract import Topic
from ...topic.statistics.compaction_stats import CompactionStats
from ...topic.statistics.delayed_stats import IndexMetric
from ...topic.statistics.topic_stats import PublisherStats, SubscriberStats, SubscriptionStats, TopicStats
from ..rest.endpoints import Query
from .compactions import compaction_json

STATS_QUERY = (
    Query("getPreciseBacklog", bool, False, "Backlogs are exact in any case."),
    Query("subscriptionBacklogSize", bool, True, "In bytes; otherwise -1."),
    Query("getEarliestTimeInBacklog", bool, False, "Reads the first message of each backlog."),
    Query("excludePublishers", bool, False),
    Query("excludeConsumers", bool, False),
)

log = logging.getLogger(__name__)

_HOLES = ("nonContiguousDeletedMessagesRanges", "nonContiguousDeletedMessagesRangesSerializedSize")
_AGE = ("oldestBacklogMessageAgeSeconds", "oldestBacklogMessageSubscriptionName")
_AGE_SECONDS_MAX = 1.0
_HOLES_NEUTRAL: Mapping[str, Any] = {
    **dict.fromkeys(_HOLES, 0),
    "delayedMessageIndexSizeInBytes": 0,
}
_TOPIC_NEUTRAL: Mapping[str, Any] = {
    "systemTopicBytesInCounter": 0,
    "bytesOutInternalCounter": 0,
    "oldestBacklogMessageAgeSeconds": -1,
    "earliestMsgPublishTimeInBacklogs": 0,
    "offloadedStorageSize": 0,
    "lastOffloadLedgerId": 0,
    "lastOffloadSuccessTimeStamp": 0,
    "lastOffloadFailureTimeStamp": 0,
    "ongoingTxnCount": 0,
    "abortedTxnCount": 0,
    "committedTxnCount": 0,
    "replication": {},
    "deduplicationStatus": "Disabled",
    **_HOLES_NEUTRAL,
    "compaction": compaction_json(CompactionStats()),
}
_THROTTLED = tuple(
    f"dispatchThrottled{what}EventsBy{level}Limit" for what in ("Msg", "Bytes") for level in ("Subscription", "Topic", "Broker")
)
"""Apache's names of the counts in SubscriptionStats.dispatch_throttled_events, in their order."""
_OF_TOPIC_APART = (
    "publishers", "subscriptions", "last_confirmed_position", "is_terminated", "compaction", "quota_evictions",
)  # fmt: skip
_OF_SUBSCRIPTION_APART = (
    "consumers", "mark_delete_position", "active_consumer_name", "key_shared_mode", "dispatch_throttled_events",
    "read_position", "is_waiting", "pending_acks", "delayed_index",
)  # fmt: skip
_SUBSCRIPTION_NEUTRAL: Mapping[str, Any] = {
    "chunkedMessageRate": 0.0,
    "earliestMsgPublishTimeInBacklog": 0,
    "bucketDelayedIndexStats": {},
    "isReplicated": False,
    "replicated": False,
    "consumersAfterMarkDeletePosition": {},
    "drainingHashesClearedTotal": 0,
    "drainingHashesUnackedMessages": 0,
    **_HOLES_NEUTRAL,
    "filterProcessedMsgCount": 0,
    "filterAcceptedMsgCount": 0,
    "filterRejectedMsgCount": 0,
    "filterRescheduledMsgCount": 0,
    **dict.fromkeys(_THROTTLED, 0),
}
_CONSUMER_NEUTRAL: Mapping[str, Any] = {
    "chunkedMessageRate": 0.0,
    "drainingHashesCount": 0,
    "drainingHashesClearedTotal": 0,
    "drainingHashesUnackedMessages": 0,
}
_SUMMED = ("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter", "msgInCounter",
           "systemTopicBytesInCounter", "bytesOutCounter", "msgOutCounter", "bytesOutInternalCounter", "storageSize",
           "backlogSize", "publishRateLimitedTimes", "offloadedStorageSize", "ongoingTxnCount", "abortedTxnCount",
           "committedTxnCount", "waitingPublishers", *_HOLES_NEUTRAL)  # fmt: skip
_SUMMED_OF_SUBSCRIPTION = (
    "msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver", "messageAckRate",
    "chunkedMessageRate", "msgBacklog", "backlogSize", "msgBacklogNoDelayed", "msgDelayed", "msgInReplay", "unackedMessages",
    "msgRateExpired", "totalMsgExpired", "drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages",
    "filterProcessedMsgCount", "filterAcceptedMsgCount", "filterRejectedMsgCount", "filterRescheduledMsgCount",
    *_THROTTLED, *_HOLES_NEUTRAL,
)  # fmt: skip
_LATEST_OF_SUBSCRIPTION = ("lastExpireTimestamp", "lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp",
                           "lastMarkDeleteAdvancedTimestamp")  # fmt: skip


async def topic_stats_json(topic: Topic) -> dict[str, Any]:
    """TopicStats of one topic or partition, as far as nothing has to be read for it."""
    body = await _topic(await topic.stats_in_slices())
    cursors = topic.operations.log.cursors
    async for name, one in in_slices(body["subscriptions"].items()):
        cursor = cursors.get(name)
        if cursor is not None:
            one |= _holes(cursor)
    return body | {name: sum(one[name] for one in body["subscriptions"].values()) for name in _HOLES}


async def told_stats(topic: Topic, query: Mapping[str, Any], here: Advertised) -> dict[str, Any]:
    """Returns the stats as STATS_QUERY asks for them."""
    body = await topic_stats_json(topic)
    body["ownerBroker"] = broker_id(here)
    body |= await _backlog_age(topic)
    if query["excludePublishers"]:
        body["publishers"] = []
    async for name, one in in_slices(body["subscriptions"].items()):
        if query["excludeConsumers"]:
            one["consumers"] = []
        if not query["subscriptionBacklogSize"]:
            one["backlogSize"] = -1
        if query["getEarliestTimeInBacklog"]:
            one["earliestMsgPublishTimeInBacklog"] = await topic.operations.earliest_publish_time_ms(name)
    times = [one["earliestMsgPublishTimeInBacklog"] for one in body["subscriptions"].values()]
    body["earliestMsgPublishTimeInBacklogs"] = min((time for time in times if time > 0), default=0)
    return body


async def partitioned_stats_json(
    metadata: Mapping[str, Any], stats: Mapping[str, Mapping[str, Any]], *, per_partition: bool
) -> dict[str, Any]:
    """PartitionedTopicStats: sums over the partitions' TopicStats, ours and other brokers', and each by itself if asked."""
    parts = list(stats.values())
    held = [one.get("subscriptions") or {} for one in parts]
    names = sorted({name for one in held for name in one})
    sums = _sums(parts, _SUMMED)
    count = sums["msgInCounter"]
    earliest = [time for one in parts if (time := one.get("earliestMsgPublishTimeInBacklogs") or 0) > 0]
    return {
        **_TOPIC_NEUTRAL,
        **sums,
        **_oldest(parts),
        "averageMsgSize": sums["bytesInCounter"] / count if count else 0.0,
        "msgChunkPublished": any(one.get("msgChunkPublished") for one in parts),
        "backlogQuotaLimitSize": max((one.get("backlogQuotaLimitSize") or 0 for one in parts), default=0),
        "backlogQuotaLimitTime": max((one.get("backlogQuotaLimitTime") or 0 for one in parts), default=0),
        "earliestMsgPublishTimeInBacklogs": min(earliest, default=0),
        "lastPublishTimeStamp": max((one.get("lastPublishTimeStamp") or 0 for one in parts), default=0),
        "publishers": _by_name(parts, "publishers", "producerName", ("msgRateIn", "msgThroughputIn", "averageMsgSize")),
        "subscriptions": {name: _merged([one[name] for one in held if name in one]) async for name in in_slices(names)},
        "metadata": dict(metadata),
        "partitions": dict(stats) if per_partition else {},
    }


def _index_sums(parts: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        for key, each in part.items():
            found[key] = {**each, "value": each["value"] + (found[key]["value"] if key in found else 0.0)}
    return found


def _holes(cursor: ManagedCursor) -> dict[str, int]:
    """The size is that of the cursor's last write to its ledger."""
    stats = cursor.hole_stats()
    return dict(zip(_HOLES, (stats.ranges, stats.saved_bytes if stats.ranges else 0), strict=True))


async def _backlog_age(topic: Topic) -> dict[str, Any]:
    """Age of the backlog; left out when the log cannot be read at once: the rest of the stats is wanted just then."""
    try:
        async with asyncio.timeout(_AGE_SECONDS_MAX):
            oldest = await topic.operations.oldest_in_backlog()
    except (BrokerError, TimeoutError) as error:
        log.info(line("age of the backlog not known", topic=topic.name, error=error))
        return {}
    return {} if oldest is None else dict(zip(_AGE, (oldest[1], oldest[0]), strict=True))


async def _topic(stats: TopicStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=_OF_TOPIC_APART)
    if stats.compaction is not None:
        body["compaction"] = compaction_json(stats.compaction)
    body["publishers"] = [_publisher(one) async for one in in_slices(stats.publishers)]
    body["subscriptions"] = {name: _subscription(one) async for name, one in in_slices(stats.subscriptions.items())}
    return {**_TOPIC_NEUTRAL, **body}


def _subscription(stats: SubscriptionStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=_OF_SUBSCRIPTION_APART)
    body["consumers"] = [_consumer(one) for one in stats.consumers]
    body["msgBacklogNoDelayed"] = stats.msg_backlog - stats.msg_delayed
    body["durable"] = stats.is_durable
    body["bucketDelayedIndexStats"] = {each.key: _metric(each) for each in stats.delayed_index}
    body |= zip(_THROTTLED, stats.dispatch_throttled_events, strict=True)
    if stats.active_consumer_name:
        body["activeConsumerName"] = stats.active_consumer_name
    if stats.key_shared_mode:
        body["keySharedMode"] = stats.key_shared_mode
        for one in body["consumers"]:
            one["drainingHashes"] = []
    return {**_SUBSCRIPTION_NEUTRAL, **body}


def _metric(each: IndexMetric) -> dict[str, Any]:
    """Apache's TopicMetricBean."""
    labels = {"labelsAndValues": list(each.labels)} if each.labels else {}
    return {"name": each.name, "value": float(each.value), **labels}


def _oldest(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the backlog age of the partition whose backlog is the oldest."""
    oldest = max(parts, key=lambda one: one.get(_AGE[0], -1), default={})
    return {name: oldest[name] for name in _AGE if oldest.get(name) is not None}


def _merged(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    first = parts[0]
    body = dict(_SUBSCRIPTION_NEUTRAL) | _sums(parts, _SUMMED_OF_SUBSCRIPTION)
    body |= {name: max(one.get(name) or 0 for one in parts) for name in _LATEST_OF_SUBSCRIPTION}
    is_durable = bool(first.get("durable", True))
    earliest = [time for one in parts if (time := one.get("earliestMsgPublishTimeInBacklog") or 0) > 0]
    body |= {
        "type": next((one.get("type") for one in parts if one.get("type") not in (None, "None")), first.get("type")),
        "blockedSubscriptionOnUnackedMsgs": any(one.get("blockedSubscriptionOnUnackedMsgs") for one in parts),
        "earliestMsgPublishTimeInBacklog": min(earliest, default=0),
        "isDurable": is_durable,
        "durable": is_durable,
        "allowOutOfOrderDelivery": bool(first.get("allowOutOfOrderDelivery")),
        "subscriptionProperties": dict(first.get("subscriptionProperties") or {}),
        "bucketDelayedIndexStats": _index_sums([one.get("bucketDelayedIndexStats") or {} for one in parts]),
        "consumers": _by_name(parts, "consumers", "consumerName", _SUMMED_OF_CONSUMER),
    }
    return body


_SUMMED_OF_CONSUMER = ("msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver",
                       "messageAckRate", "availablePermits", "unackedMessages")  # fmt: skip


def _by_name(parts: Iterable[Mapping[str, Any]], member: str, name: str, summed: Iterable[str]) -> list[dict[str, Any]]:
    """A client's producer, or consumer, of all partitions is one."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        for one in part.get(member) or ():
            found.setdefault(one.get(name) or "", []).append(one)
    return [dict(each[0]) | _sums(each, summed) for each in found.values()]


def _publisher(stats: PublisherStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("connected_since_ms",))
    return body | {"connectedSince": _iso(stats.connected_since_ms), "supportsPartialProducer": False}


def _consumer(stats: SubscriberStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=("connected_since_ms", "key_hash_ranges"))
    body["connectedSince"] = _iso(stats.connected_since_ms)
    body["lastAckedTime"] = _iso(stats.last_acked_timestamp)
    body["lastConsumedTime"] = _iso(stats.last_consumed_timestamp)
    if stats.key_hash_ranges:
        body["keyHashRangeArrays"] = [list(one) for one in stats.key_hash_ranges]
    return {**_CONSUMER_NEUTRAL, **body}


_SCALARS = frozenset({bool, float, int, str})


def _sums(parts: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    parts = list(parts)
    return {name: _plain(name, sum(one.get(name) or 0 for one in parts)) for name in names}


def _fields(stats: Any, leave_out: tuple[str, ...]) -> dict[str, Any]:
    """Plain fields under Apache's names; None is left out, as Jackson does."""
    body: dict[str, Any] = {}
    for name, called, is_rate in _names(cast(Hashable, type(stats)), leave_out):
        value = getattr(stats, name)
        if value is None:
            continue
        if is_rate:
            body[called] = float(value)
        elif type(value) in _SCALARS:  # nearly all are: a check of each against an abstract class is most of the cost of a body
            body[called] = value
        else:
            body[called] = dict(value) if isinstance(value, Mapping) else value
    return body


@lru_cache
def _names(kind: Hashable, leave_out: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    """Returns the fields of a dataclass: a field's name, Apache's, and whether it is a rate."""
    names = [field.name for field in dataclasses.fields(cast(Any, kind)) if field.name not in leave_out]
    return tuple((name, _camel(name), _is_rate(_camel(name))) for name in names)


def _plain(name: str, value: Any) -> Any:
    """A sum of no rates is the int 0; a rate is a float, and 0.0 in JSON."""
    return float(value) if _is_rate(name) else value


@lru_cache
def _is_rate(name: str) -> bool:
    return ("Rate" in name and "Limited" not in name) or "Throughput" in name


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
