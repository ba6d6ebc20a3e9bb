"""Checks of single policies of a namespace, and of two policies together. Pure; Refusal in Apache's words."""

from collections.abc import Callable, Mapping
from typing import Any

from ....policies.members import parse_quota, parse_retention
from ....policies.policies import QuotaType
from ...rest.answers import Refusal
from ..topic_policies.bodies import check_retention_limits, check_sizes, is_conflict


def non_negative(reason: str) -> Callable[[Any], None]:
    """412 for less than 0; None is fine."""

    def check(value: int | None) -> None:
        if value is not None and value < 0:
            raise Refusal(412, reason)

    return check


def check_retention(value: Any) -> None:
    check_retention_limits(value["retentionTimeInMinutes"], value["retentionSizeInMB"])


def check_persistence(value: Any) -> None:
    """BookKeeper's order of the three, and Apache's bounds."""
    check_sizes(*(value[f"bookkeeper{name}"] for name in ("Ensemble", "WriteQuorum", "AckQuorum")))
    if value["managedLedgerMaxMarkDeleteRate"] < 0:
        raise Refusal(400, "managedLedgerMaxMarkDeleteRate must be >= 0")


def check_auto_topic(value: Any) -> None:
    """AutoTopicCreationOverride.validateOverride; the type counts if topics may be made."""
    if not value.get("allowAutoTopicCreation"):
        return
    kind, partitions = value.get("topicType"), value.get("defaultNumPartitions")
    wrong = ""
    if kind not in ("partitioned", "non-partitioned"):
        wrong = f"Unknown topic type [{'null' if kind is None else kind}]"
    elif kind == "partitioned" and (partitions is None or partitions < 1):
        wrong = "[defaultNumPartitions] cannot be less than 1 for partition type."
        wrong = "[defaultNumPartitions] cannot be null when the type is partitioned." if partitions is None else wrong
    elif kind == "non-partitioned" and partitions is not None:
        wrong = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    if wrong:
        raise Refusal(412, f"Invalid configuration for autoTopicCreationOverride. the detail is {wrong}")


def check_auto_partitions(value: Any, partitions_max: int) -> None:
    """406 for partitions of topics to come that no topic may have (Apache: NamespacesBase)."""
    if value.get("topicType") == "partitioned" and (value.get("defaultNumPartitions") or 0) > partitions_max:
        raise Refusal(406, f"Number of partitions should be less than or equal to {partitions_max}")


def check_entry_filters(value: Any) -> None:
    """There are no filters to be loaded, so that none is ever found."""
    names = [name.strip() for name in (value.get("entryFilterNames") or "").split(",") if name.strip()]
    if not names:
        raise Refusal(400, "entryFilterNames can't be empty. To remove entry filters use the remove method.")
    raise Refusal(400, f"Entry filter '{names[0]}' not found")


def fits_quota(document: Mapping[str, Any], value: Any) -> None:
    """A retention beside the quota that stands there."""
    quota = (document.get("backlog_quota_map") or {}).get(QuotaType.DESTINATION_STORAGE.value)
    if quota is not None and is_conflict(parse_quota(quota), parse_retention(value)):
        raise Refusal(412, "Retention Quota must exceed configured backlog quota for namespace.")
