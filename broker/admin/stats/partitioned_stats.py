"""Stats of a partitioned topic as Apache's JSON (PartitionedTopicStats): sums over the TopicStats of its partitions.

A topic may have 30,000 partitions, and each of them 30,000 subscriptions: every loop over either is in slices.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ports.loop.slices import in_slices, let_go

from .topic_stats import AGE, HOLES_NEUTRAL, SUBSCRIPTION_NEUTRAL, THROTTLED, TOPIC_NEUTRAL, is_rate

Bodies = Sequence[Mapping[str, Any]]
"""JSON of partitions, or of their subscriptions, producers or consumers."""

_SUMMED = ("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter", "msgInCounter",
           "systemTopicBytesInCounter", "bytesOutCounter", "msgOutCounter", "bytesOutInternalCounter", "storageSize",
           "backlogSize", "publishRateLimitedTimes", "offloadedStorageSize", "ongoingTxnCount", "abortedTxnCount",
           "committedTxnCount", "waitingPublishers", *HOLES_NEUTRAL)  # fmt: skip
_SUMMED_OF_SUBSCRIPTION = (
    "msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver", "messageAckRate",
    "chunkedMessageRate", "msgBacklog", "backlogSize", "msgBacklogNoDelayed", "msgDelayed", "msgInReplay", "unackedMessages",
    "msgRateExpired", "totalMsgExpired", "drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages",
    "filterProcessedMsgCount", "filterAcceptedMsgCount", "filterRejectedMsgCount", "filterRescheduledMsgCount",
    *THROTTLED, *HOLES_NEUTRAL,
)  # fmt: skip
_LATEST_OF_SUBSCRIPTION = ("lastExpireTimestamp", "lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp",
                           "lastMarkDeleteAdvancedTimestamp")  # fmt: skip
_LARGEST = ("backlogQuotaLimitSize", "backlogQuotaLimitTime", "lastPublishTimeStamp")
_SUMMED_OF_CONSUMER = ("msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver",
                       "messageAckRate", "availablePermits", "unackedMessages")  # fmt: skip


async def partitioned_stats_json(
    metadata: Mapping[str, Any], stats: Mapping[str, Mapping[str, Any]], *, per_partition: bool
) -> dict[str, Any]:
    """Sums over the partitions' TopicStats, ours and other brokers', and each by itself if asked."""
    parts = list(stats.values())
    partitions = dict(stats) if per_partition else {}
    del stats
    sums = await _sums(parts, _SUMMED)
    count = sums["msgInCounter"]
    body = {
        **TOPIC_NEUTRAL,
        **sums,
        **await _oldest(parts),
        **await _largest(parts, _LARGEST),
        "averageMsgSize": sums["bytesInCounter"] / count if count else 0.0,
        "msgChunkPublished": any(one.get("msgChunkPublished") for one in parts),
        "earliestMsgPublishTimeInBacklogs": await _earliest(parts, "earliestMsgPublishTimeInBacklogs"),
        "publishers": await _by_name(parts, "publishers", "producerName", ("msgRateIn", "msgThroughputIn", "averageMsgSize")),
        "subscriptions": await _subscriptions(parts),
        "metadata": dict(metadata),
        "partitions": partitions,
    }
    await let_go(parts)
    return body


async def _subscriptions(parts: Bodies) -> dict[str, Any]:
    held: dict[str, list[Mapping[str, Any]]] = {}
    async for name, one in in_slices(chain.from_iterable((part.get("subscriptions") or {}).items() for part in parts)):
        held.setdefault(name, []).append(one)
    return {name: await _merged(held.pop(name)) async for name in in_slices(sorted(held))}


async def _merged(parts: Bodies) -> dict[str, Any]:
    """Sums over the stats of one subscription."""
    first = parts[0]
    is_durable = bool(first.get("durable", True))
    return {
        **SUBSCRIPTION_NEUTRAL,
        **await _sums(parts, _SUMMED_OF_SUBSCRIPTION),
        **await _largest(parts, _LATEST_OF_SUBSCRIPTION),
        "type": next((one.get("type") for one in parts if one.get("type") not in (None, "None")), first.get("type")),
        "blockedSubscriptionOnUnackedMsgs": any(one.get("blockedSubscriptionOnUnackedMsgs") for one in parts),
        "earliestMsgPublishTimeInBacklog": await _earliest(parts, "earliestMsgPublishTimeInBacklog"),
        "isDurable": is_durable,
        "durable": is_durable,
        "allowOutOfOrderDelivery": bool(first.get("allowOutOfOrderDelivery")),
        "subscriptionProperties": dict(first.get("subscriptionProperties") or {}),
        "bucketDelayedIndexStats": await _index_sums(parts),
        "consumers": await _by_name(parts, "consumers", "consumerName", _SUMMED_OF_CONSUMER),
    }


async def _index_sums(parts: Bodies) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async for part in in_slices(parts):
        for key, each in (part.get("bucketDelayedIndexStats") or {}).items():
            found[key] = {**each, "value": each["value"] + (found[key]["value"] if key in found else 0.0)}
    return found


async def _oldest(parts: Bodies) -> dict[str, Any]:
    """Returns the backlog age of the partition whose backlog is the oldest."""
    oldest: Mapping[str, Any] = parts[0] if parts else {}
    async for one in in_slices(parts):
        if one.get(AGE[0], -1) > oldest.get(AGE[0], -1):
            oldest = one
    return {name: oldest[name] for name in AGE if oldest.get(name) is not None}


async def _by_name(parts: Bodies, member: str, name: str, summed: Sequence[str]) -> list[dict[str, Any]]:
    """A client's producer, or consumer, of all partitions is one."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    async for one in in_slices(chain.from_iterable(part.get(member) or () for part in parts)):
        found.setdefault(one.get(name) or "", []).append(one)
    return [dict(each[0]) | await _sums(each, summed) async for each in in_slices(found.values())]


async def _sums(parts: Bodies, names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(names, 0)
    async for one in in_slices(parts):
        for name in names:
            found[name] += one.get(name) or 0
    return {name: _plain(name, value) for name, value in found.items()}


async def _largest(parts: Bodies, names: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(names, 0)
    async for one in in_slices(parts):
        for name, value in found.items():
            found[name] = max(value, one.get(name) or 0)
    return found


async def _earliest(parts: Bodies, name: str) -> int:
    """Least time that is given; 0: none is."""
    found = [time async for one in in_slices(parts) if (time := one.get(name) or 0) > 0]
    return min(found, default=0)


def _plain(name: str, value: Any) -> Any:
    """A sum of no rates is the int 0; a rate is a float, and 0.0 in JSON."""
    return float(value) if is_rate(name) else value
