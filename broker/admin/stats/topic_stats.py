"""Stats values as Apache's JSON: TopicStats and its members. A field has its name in camel case.
Counts of features that do not exist here have Apache's value for none (`_..._NEUTRAL`), so that every member of Apache's is
there.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from managed_ledger.contract import ManagedCursor
from metadata.paths import encode_name
from ports.logs import line
from ports.loop.slices import in_slices
from ports.loop.taking_apart import items_taken_apart, taken_apart

from ...errors import BrokerError
from ...service.addresses import Advertised, broker_id
from ...topic.contract import Topic
from ...topic.statistics.compaction_stats import CompactionStats
from ...topic.statistics.delayed_stats import IndexMetric
from ...topic.statistics.topic_stats import PublisherStats, SubscriberStats, SubscriptionStats, TopicStats
from ..rest.endpoints import Query
from ..rest.json_texts import ENCODER, LARGE, Written
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
AGE = ("oldestBacklogMessageAgeSeconds", "oldestBacklogMessageSubscriptionName")
_AGE_SECONDS_MAX = 1.0
HOLES_NEUTRAL: Mapping[str, Any] = {
    **dict.fromkeys(_HOLES, 0),
    "delayedMessageIndexSizeInBytes": 0,
}
TOPIC_NEUTRAL: Mapping[str, Any] = {
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
    **HOLES_NEUTRAL,
    "compaction": compaction_json(CompactionStats()),
}
THROTTLED = tuple(
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
SUBSCRIPTION_NEUTRAL: Mapping[str, Any] = {
    "chunkedMessageRate": 0.0,
    "earliestMsgPublishTimeInBacklog": 0,
    "bucketDelayedIndexStats": {},
    "isReplicated": False,
    "replicated": False,
    "consumersAfterMarkDeletePosition": {},
    "drainingHashesClearedTotal": 0,
    "drainingHashesUnackedMessages": 0,
    **HOLES_NEUTRAL,
    "filterProcessedMsgCount": 0,
    "filterAcceptedMsgCount": 0,
    "filterRejectedMsgCount": 0,
    "filterRescheduledMsgCount": 0,
    **dict.fromkeys(THROTTLED, 0),
}
_CONSUMER_NEUTRAL: Mapping[str, Any] = {
    "chunkedMessageRate": 0.0,
    "drainingHashesCount": 0,
    "drainingHashesClearedTotal": 0,
    "drainingHashesUnackedMessages": 0,
}


async def topic_stats_json(topic: Topic, *, written: bool = False) -> dict[str, Any]:
    """TopicStats of one topic or partition, as far as nothing has to be read for it. `written`: very many subscriptions are
    given as JSON texts."""

    async def asked(_: str, one: dict[str, Any]) -> None:
        """Leaves the subscription as it is."""

    return await _topic(topic, await topic.stats_in_slices(), asked, written=written)


async def told_stats(topic: Topic, query: Mapping[str, Any], here: Advertised, *, written: bool = False) -> dict[str, Any]:
    """Returns the stats as STATS_QUERY asks for them. `written` as above."""
    earliest = 0

    async def asked(name: str, one: dict[str, Any]) -> None:
        nonlocal earliest
        if query["excludeConsumers"]:
            one["consumers"] = []
        if not query["subscriptionBacklogSize"]:
            one["backlogSize"] = -1
        if query["getEarliestTimeInBacklog"]:
            time = await topic.operations.earliest_publish_time_ms(name)
            one["earliestMsgPublishTimeInBacklog"] = time if one["msgBacklog"] else -1
            earliest = time if 0 < time < (earliest or time + 1) else earliest

    body = await _topic(topic, await topic.stats_in_slices(), asked, written=written)
    body["ownerBroker"] = broker_id(here)
    body |= await _backlog_age(topic)
    if query["excludePublishers"]:
        body["publishers"] = []
    body["earliestMsgPublishTimeInBacklogs"] = earliest
    return body


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
        log.info(line("age of the backlog unknown", topic=topic.name, error=error))
        return {}
    return {} if oldest is None else dict(zip(AGE, (oldest[1], oldest[0]), strict=True))


async def _topic(
    topic: Topic, stats: TopicStats, asked: Callable[[str, dict[str, Any]], Awaitable[None]], *, written: bool
) -> dict[str, Any]:
    """Keeps no member of `stats` whose JSON is made: those of a slice leave memory in its turn. `asked` changes the JSON of
    a subscription."""
    body = _fields(stats, leave_out=_OF_TOPIC_APART)
    if stats.compaction is not None:
        body["compaction"] = compaction_json(stats.compaction)
    publishers, subscriptions = taken_apart(stats.publishers), items_taken_apart(stats.subscriptions)
    is_written = written and len(stats.subscriptions) > LARGE
    del stats
    cursors, holes = topic.operations.log.cursors, dict.fromkeys(_HOLES, 0)
    found: dict[str, Any] = Written() if is_written else {}
    async for name, each in in_slices(subscriptions):
        one = _subscription(each)
        cursor = cursors.get(encode_name(name))
        if cursor is not None:
            one |= _holes(cursor)
        for hole in _HOLES:
            holes[hole] += one[hole]
        await asked(name, one)
        found[name] = ENCODER.encode(one) if is_written else one
    body["publishers"] = [_publisher(one) async for one in in_slices(publishers)]
    return {**TOPIC_NEUTRAL, **body, **holes, "subscriptions": found}


def _subscription(stats: SubscriptionStats) -> dict[str, Any]:
    body = _fields(stats, leave_out=_OF_SUBSCRIPTION_APART)
    body["consumers"] = [_consumer(one) for one in stats.consumers]
    body["msgBacklogNoDelayed"] = stats.msg_backlog - stats.msg_delayed
    body["durable"] = stats.is_durable
    body["bucketDelayedIndexStats"] = {each.key: _metric(each) for each in stats.delayed_index}
    body |= zip(THROTTLED, stats.dispatch_throttled_events, strict=True)
    if stats.active_consumer_name:
        body["activeConsumerName"] = stats.active_consumer_name
    if stats.key_shared_mode:
        body["keySharedMode"] = stats.key_shared_mode
        for one in body["consumers"]:
            one["drainingHashes"] = []
    return {**SUBSCRIPTION_NEUTRAL, **body}


def _metric(each: IndexMetric) -> dict[str, Any]:
    """Apache's TopicMetricBean."""
    labels = {"labelsAndValues": list(each.labels)} if each.labels else {}
    return {"name": each.name, "value": float(each.value), **labels}


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
    return tuple((name, _camel(name), is_rate(_camel(name))) for name in names)


@lru_cache
def is_rate(name: str) -> bool:
    return ("Rate" in name and "Limited" not in name) or "Throughput" in name


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
