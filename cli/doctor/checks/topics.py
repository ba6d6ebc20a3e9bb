"""Topics and namespaces: quotas, publish rates, retention, compaction, transactions, bundles, topics that do not load. Pure."""

from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, named

QUOTA_WARN = 0.9
COMPACTION_BACKLOG_WARN = 1_000_000
EVICTS = "consumer_backlog_eviction"


class QuotaState(NamedTuple):
    """A topic whose backlog is near its quota, or over it; `subscription` has the oldest message, where that is known."""

    topic: str
    kind: str
    """`size` in bytes, or `time` in seconds."""
    used: int
    limit: int
    policy: str
    subscription: str = ""


class CompactionState(NamedTuple):
    """A topic that is compacted: entries that are not compacted yet, and whether it failed the last time."""

    topic: str
    backlog: int
    has_failed: bool


class BundleState(NamedTuple):
    """A namespace: its topics, its bundles, and how many topics a bundle may have before it is split."""

    namespace: str
    topics: int
    bundles: int
    topics_max: int


def quotas(found: tuple[QuotaState, ...]) -> Verdict:
    """Producers are refused, or messages lost, once a backlog is over its quota."""
    near = [each for each in found if each.used >= QUOTA_WARN * each.limit]
    if not near:
        return Verdict(OK, "no backlog is near its quota")
    worst = max(near, key=lambda each: each.used / each.limit)
    unit = "bytes" if worst.kind == "size" else "s"
    is_over = worst.used >= worst.limit
    evidence = f"the backlog of {worst.topic} is {worst.used} of {worst.limit} {unit} ({worst.policy})"
    what = f"messages of {worst.subscription or 'its slowest subscription'} are dropped, which loses them"
    consequence = what if worst.policy == EVICTS else "its producers are refused"
    namespace = worst.topic.partition("://")[2].rpartition("/")[0]
    remedy = (
        f"consume the backlog of {worst.topic} ({worst.subscription or 'topics stats names its subscriptions'}), or "
        "raise its quota: "
        f"pulsar-admin namespaces set-backlog-quota {namespace}, or topics set-backlog-quota. Nothing needs to be deleted"
    )
    return Verdict(FAIL if is_over else WARN, f"{evidence}: {consequence}" + ("" if is_over else " soon"), remedy)


def publish_rates(limited: tuple[str, ...]) -> Verdict:
    if not limited:
        return Verdict(OK, "no producer is held by a publish rate")
    remedy = f"raise the publish rate: pulsar-admin topics set-publish-rate {limited[0]}, or namespaces set-publish-rate"
    return Verdict(WARN, f"a publish rate holds the producers of {named(limited)}", remedy)


def retention(unbounded: tuple[str, ...]) -> Verdict:
    if not unbounded:
        return Verdict(OK, "retention has a bound everywhere")
    remedy = (
        f"bound it: pulsar-admin namespaces set-retention {unbounded[0]} -s SIZE -t TIME, which deletes what is "
        "acknowledged and "
        "beyond that; or give the disks room for everything"
    )
    return Verdict(WARN, f"retention of size -1 and time -1 keeps everything for ever in {named(unbounded)}", remedy)


def compactions(topics: tuple[CompactionState, ...]) -> Verdict:
    failed = [each.topic for each in topics if each.has_failed]
    if failed:
        return Verdict(WARN, f"the last compaction failed of {named(failed)}", _compact(failed[0]))
    worst = max(topics, key=lambda each: each.backlog, default=None)
    if worst is None:
        return Verdict(OK, "no topic is compacted")
    level = WARN if worst.backlog >= COMPACTION_BACKLOG_WARN else OK
    evidence = f"{worst.backlog} entries of {worst.topic} are not compacted yet, the most of {len(topics)} topics"
    return Verdict(level, evidence, _compact(worst.topic))


def _compact(topic: str) -> str:
    return f"pulsar-admin topics compaction-status {topic} says why; then pulsar-admin topics compact {topic}"


def slow_transactions(ids: tuple[str, ...]) -> Verdict:
    if not ids:
        return Verdict(OK, "no transaction is open for long")
    most, least = ids[0].strip("()").split(",")
    remedy = (
        f"look at the client that opened it; pulsar-admin transactions abort-transaction -m {most} -l {least} ends it: "
        "what was "
        "published and acknowledged within it is undone, and readers behind it go on"
    )
    return Verdict(WARN, f"{len(ids)} open for too long: {named(ids)}", remedy)


def bundles(states: tuple[BundleState, ...]) -> Verdict:
    full = [each for each in states if each.topics > each.topics_max * each.bundles]
    if not full:
        return Verdict(OK, "the topics of each namespace have bundles enough")
    worst = max(full, key=lambda each: each.topics / each.bundles)
    remedy = (
        f"pulsar-admin namespaces split-bundle {worst.namespace} -bt LARGEST, or set loadBalancerAutoBundleSplitEnabled=true"
    )
    evidence = (
        f"{worst.namespace} has {worst.topics} topics in {worst.bundles} bundles, and {worst.topics_max} are much for one"
    )
    return Verdict(WARN, evidence, remedy)


def topics_answer(refused: tuple[tuple[str, str], ...]) -> Verdict:
    if not refused:
        return Verdict(OK, "every topic that was asked answers")
    topic, reason = refused[0]
    remedy = (
        f"pulsar-admin topics unload {topic}, and read its broker's log; if its ledgers cannot be read, start the "
        "bookies that hold "
        f"them (pulsar-admin topics info-internal {topic} names the ledgers, bookkeeper shell ledgermetadata -l ID "
        "their bookies)"
    )
    return Verdict(FAIL, f"cannot be opened: {named([each for each, _ in refused])}: {reason[:200]}", remedy)


CHECKS = (
    Check(
        "topics-answer",
        ("refused_topics",),
        topics_answer,
        "a topic cannot be opened",
        "unload it; start the bookies of its ledgers",
    ),
    Check(
        "backlog-quota",
        ("quotas",),
        quotas,
        "a backlog is near its quota, or over it",
        "consume the backlog, or raise the quota",
    ),
    Check("publish-rate", ("rate_limited",), publish_rates, "a publish rate holds producers", "raise the publish rate"),
    Check("retention-unbounded", ("unbounded",), retention, "retention keeps everything for ever", "bound the retention"),
    Check("slow-transactions", ("slow_transactions",), slow_transactions, "a transaction stays open", "abort-transaction"),
    Check("compaction", ("compactions",), compactions, "compaction lags, or failed", "compaction-status, then compact"),
    Check("topics-per-bundle", ("bundles",), bundles, "too many topics for the bundles of a namespace", "split-bundle"),
)
