"""What a namespace says of its topics, and what holds for one when it says nothing. Pure data.

Names are Apache's (Policies: message_ttl_in_seconds, retention_policies, backlog_quota_map; BacklogQuota). A limit of -1 is
none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MEGABYTE = 1 << 20


class QuotaType(StrEnum):
    """BacklogQuota.BacklogQuotaType."""

    DESTINATION_STORAGE = "destination_storage"
    MESSAGE_AGE = "message_age"


class QuotaPolicy(StrEnum):
    """BacklogQuota.RetentionPolicy: what happens to whom when the backlog is too large."""

    PRODUCER_REQUEST_HOLD = "producer_request_hold"
    PRODUCER_EXCEPTION = "producer_exception"
    CONSUMER_BACKLOG_EVICTION = "consumer_backlog_eviction"


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """`limit_bytes` counts for DESTINATION_STORAGE (0 or more), `limit_seconds` for MESSAGE_AGE (more than 0)."""

    limit_bytes: int = -1
    limit_seconds: int = -1
    policy: QuotaPolicy = QuotaPolicy.PRODUCER_REQUEST_HOLD


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """RetentionPolicies: how long and how much is kept after all have consumed it; -1 without bound, 0 nothing."""

    minutes: int
    megabytes: int

    @property
    def age_ms(self) -> int:
        return self.minutes * 60_000 if self.minutes > 0 else self.minutes

    @property
    def size_bytes(self) -> int:
        return self.megabytes * MEGABYTE if self.megabytes > 0 else self.megabytes


@dataclass(frozen=True, slots=True)
class TopicPolicies:
    """A namespace's; None, or a type of quota that is missing: as the broker's settings say."""

    message_ttl_seconds: int | None = None
    retention: RetentionPolicy | None = None
    quotas: Mapping[QuotaType, BacklogQuota] = field(default_factory=dict)


EXEMPT = TopicPolicies(message_ttl_seconds=0, quotas={each: BacklogQuota() for each in QuotaType})
"""Of the system's own topics: nothing expires and no producer is held back."""


@dataclass(frozen=True, slots=True)
class EffectivePolicies:
    """What holds for a topic. `ttl_seconds` 0: nothing expires."""

    ttl_seconds: int
    retention: RetentionPolicy
    size_quota: BacklogQuota
    age_quota: BacklogQuota
