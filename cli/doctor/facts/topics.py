"""Facts of topics, by the admin REST: subscriptions, quotas, rates, retention, transactions.

Read only, with a bound on topics.
"""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from cli.admin.http import Answer, Refused, Unreachable
from cli.admin.request import ADMIN, Request, topic_name
from cli.doctor.checks.subscriptions import ConsumerState, SubscriptionState
from cli.doctor.checks.topics import BundleState, CompactionState, QuotaState

TOPICS_MAX = 500
SILENT_MAX = 3
"""Topics that may give no answer in time: each of them holds the doctor."""
PATIENCE_SECONDS = 120.0
"""Time without progress after which something is reported to stand still."""
OPEN_TRANSACTION_SECONDS = 600.0
EXPIRED_SECONDS = 3600.0
RATE_SAMPLE_SECONDS = 1.2
TOPICS_PER_BUNDLE = 1_000
COMPACTION = "__compaction"
QUOTA_TYPES = ("destination_storage", "message_age")
_SINGLE_ACTIVE = ("Exclusive", "Failover")
_EVENTS = "dispatchThrottled"


class Asking(Protocol):
    """The admin REST."""

    def ask(self, request: Request) -> Answer: ...


def asked(rest: Asking, path: str) -> Any:
    """The document at a path below /admin/v2/. Refused, Unreachable."""
    body = rest.ask(Request("GET", path if path.startswith("/") else ADMIN + path)).body
    return json.loads(body) if body else None


class Topics:
    """Stats of the first topics, in their order. `now` is in seconds, by the server's clock."""

    def __init__(self, rest: Asking, now: float, topics_max: int, patience_seconds: float, topics_per_bundle: int) -> None:
        self._rest, self._now_ms, self._topics_max = rest, now * 1000, topics_max
        self._patience_ms, self._per_bundle = patience_seconds * 1000, topics_per_bundle
        self._policies: dict[str, Mapping[str, Any]] = {}
        self._counts: dict[str, int] = {}
        self._refused: list[tuple[str, str]] = []
        self._silent = 0
        self._seen: list[tuple[str, Mapping[str, Any]]] = []

    def read(self) -> None:
        """Refused, Unreachable."""
        left = self._topics_max
        for tenant in asked(self._rest, "tenants"):
            for namespace in asked(self._rest, f"namespaces/{tenant}"):
                self._policies[namespace] = asked(self._rest, f"namespaces/{namespace}") or {}
                topics = asked(self._rest, f"persistent/{namespace}")
                self._counts[namespace] = len(topics)
                self._seen += self._stats(topics[:left])
                left -= len(topics[:left])

    def _stats(self, topics: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for topic in topics:
            try:
                yield topic, asked(self._rest, f"{topic_name(topic).path}/stats")
            except Refused as refused:
                if refused.status not in (404, 409):  # deleted meanwhile
                    self._refused.append((topic, str(refused)))
            except Unreachable as error:
                if not isinstance(error.__cause__, TimeoutError) or self._silent >= SILENT_MAX:
                    raise
                self._silent += 1
                self._refused.append((topic, "no answer in time"))

    def facts(self) -> dict[str, Any]:
        """Facts, after `read`. Refused, Unreachable."""
        return {
            "subscriptions": tuple(self._subscriptions()),
            "compactions": tuple(self._compactions()),
            "quotas": tuple(each for topic, stats in self._seen for each in self._quotas(topic, stats)),
            "rate_limited": self._rate_limited(),
            "unbounded": tuple(name for name, policies in self._policies.items() if _is_unbounded(policies)),
            "bundles": tuple(
                BundleState(
                    name, count, int((self._policies[name].get("bundles") or {}).get("numBundles") or 1), self._per_bundle
                )
                for name, count in self._counts.items()
            ),
            "refused_topics": tuple(self._refused),
        }

    # ---- Subscriptions

    def _subscriptions(self) -> Iterator[SubscriptionState]:
        for topic, stats in self._seen:
            for name, each in (stats.get("subscriptions") or {}).items():
                if name != COMPACTION:
                    yield self._state(topic, name, each, int(stats.get("ongoingTxnCount") or 0))

    def _state(self, topic: str, name: str, stats: Mapping[str, Any], open_transactions: int) -> SubscriptionState:
        consumers = [each for each in stats.get("consumers") or [] if _is_active(stats, each)]
        connected = _latest(each.get("connectedSince") for each in consumers)
        moved = max(connected, *(_latest([stats.get(key)]) for key in ("lastConsumedTimestamp", "lastConsumedFlowTimestamp")))
        acked = max(connected, _latest([stats.get("lastAckedTimestamp")]))
        expired_ms = self._now_ms - _latest([stats.get("lastExpireTimestamp")])
        return SubscriptionState(
            topic=topic,
            name=name,
            backlog=int(stats.get("msgBacklog") or 0),
            consumers=tuple(map(_consumer, consumers)),
            unacked=int(stats.get("unackedMessages") or 0),
            blocked=bool(stats.get("blockedSubscriptionOnUnackedMsgs")),
            holes=int(stats.get("nonContiguousDeletedMessagesRanges") or 0),
            delayed=int(stats.get("msgDelayed") or 0),
            is_silent=self._now_ms - moved > self._patience_ms,
            is_ackless=self._now_ms - acked > self._patience_ms,
            expired=int(stats.get("totalMsgExpired") or 0) if expired_ms < EXPIRED_SECONDS * 1000 else 0,
            open_transactions=open_transactions,
            is_throttled=any(value for key, value in stats.items() if key.startswith(_EVENTS)),
        )

    def _compactions(self) -> Iterator[CompactionState]:
        for topic, stats in self._seen:
            own = (stats.get("subscriptions") or {}).get(COMPACTION)
            if own is not None:
                about = stats.get("compaction") or {}
                failed, succeeded = (int(about.get(f"lastCompaction{name}Timestamp") or 0) for name in ("Failed", "Succeed"))
                yield CompactionState(topic, int(own.get("msgBacklog") or 0), failed > succeeded)

    # ---- Quotas and rates

    def _quotas(self, topic: str, stats: Mapping[str, Any]) -> Iterator[QuotaState]:
        """Quotas that have a limit and are used at all; the policy is asked for when it matters."""
        slowest = str(stats.get("oldestBacklogMessageSubscriptionName") or _largest(stats))
        used = (int(stats.get("backlogSize") or 0), int(stats.get("oldestBacklogMessageAgeSeconds") or 0))
        limits = (int(stats.get("backlogQuotaLimitSize") or -1), int(stats.get("backlogQuotaLimitTime") or -1))
        for kind, name, now, limit in zip(("size", "time"), QUOTA_TYPES, used, limits, strict=True):
            if limit > 0 and 2 * now >= limit:
                yield QuotaState(topic, kind, now, limit, self._policy(topic, name), slowest)

    def _policy(self, topic: str, kind: str) -> str:
        quotas = asked(self._rest, f"{topic_name(topic).path}/backlogQuotaMap?applied=true") or {}
        return str((quotas.get(kind) or {}).get("policy") or "producer_request_hold")

    def _rate_limited(self) -> tuple[str, ...]:
        """Topics whose publish rate limit holds producers now: the count, which only grows, grew meanwhile."""
        before = {topic: count for topic, stats in self._seen if (count := int(stats.get("publishRateLimitedTimes") or 0))}
        if not before:
            return ()
        time.sleep(RATE_SAMPLE_SECONDS)
        after = dict(self._stats(list(before)))
        return tuple(topic for topic, stats in after.items() if int(stats.get("publishRateLimitedTimes") or 0) > before[topic])


def _is_active(stats: Mapping[str, Any], consumer: Mapping[str, Any]) -> bool:
    """Whether it is dispatched to: the others of Exclusive and Failover stand by."""
    active = stats.get("activeConsumerName")
    return stats.get("type") not in _SINGLE_ACTIVE or not active or consumer.get("consumerName") == active


def _consumer(stats: Mapping[str, Any]) -> ConsumerState:
    return ConsumerState(
        str(stats.get("consumerName") or ""),
        str(stats.get("address") or ""),
        int(stats.get("availablePermits") or 0),
        bool(stats.get("blockedConsumerOnUnackedMsgs")),
    )


def _latest(times: Any) -> float:
    """The latest of numbers and of ISO times, in ms since the epoch; 0 for none."""
    return max((_ms(each) for each in times if each), default=0.0)


def _ms(at: Any) -> float:
    from datetime import datetime

    if isinstance(at, int | float):
        return float(at)
    try:
        return datetime.fromisoformat(str(at)).timestamp() * 1000
    except ValueError:
        return 0.0


def _largest(stats: Mapping[str, Any]) -> str:
    own = stats.get("subscriptions") or {}
    return max(own, key=lambda name: int(own[name].get("msgBacklog") or 0), default="")


def _is_unbounded(policies: Mapping[str, Any]) -> bool:
    kept = policies.get("retention_policies") or {}
    return (kept.get("retentionSizeInMB"), kept.get("retentionTimeInMinutes")) == (-1, -1)


def slow_transactions(rest: Asking, now: float, seconds: float) -> tuple[str, ...]:
    """Ids of those that have been open for longer, and not only may be; the oldest first. Refused, Unreachable."""
    found = asked(rest, "/admin/v3/transactions/slowTransactions/1") or {}
    opened = {name: float((about or {}).get("openTimestamp") or now * 1000) for name, about in found.items()}
    return tuple(sorted((name for name, at in opened.items() if now * 1000 - at > seconds * 1000), key=opened.__getitem__))
