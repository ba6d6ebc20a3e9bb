"""Subscriptions that do not move, each with the one reason that its numbers show, and what to do about it. Pure.

A remedy that loses messages says so; an unload is the remedy of a subscription alone for which nothing else is to blame.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, by_limits, named

HOLES_WARN, HOLES_FAIL = 10_000, 1_000_000
"""Holes. managedLedgerMaxUnackedRangesToPersist stores 10,000 of them; messages beyond come again after a failover."""
BACKLOG_WARN = 1_000_000
DELAYED_WARN = 100_000


class ConsumerState(NamedTuple):
    """A consumer as its broker sees it."""

    name: str
    address: str
    permits: int
    blocked: bool = False

    def __str__(self) -> str:
        return f"consumer {self.name or '(no name)'} at {self.address or '(no address)'}"


class SubscriptionState(NamedTuple):
    """`consumers` are those that are dispatched to: of Exclusive and Failover the active one.

    `is_silent`: no delivery, no permits and no new consumer for longer than the patience; `is_ackless`: no acknowledgement
    for so long. `expired` are entries that the time to live took within the last hour. `holes` are ranges acknowledged beyond
    the mark-delete position.
    """

    topic: str
    name: str
    backlog: int
    consumers: tuple[ConsumerState, ...]
    unacked: int = 0
    blocked: bool = False
    holes: int = 0
    delayed: int = 0
    is_silent: bool = False
    is_ackless: bool = False
    expired: int = 0
    open_transactions: int = 0
    is_throttled: bool = False

    def __str__(self) -> str:
        return f"{self.name} of {self.topic}"


Subscriptions = tuple[SubscriptionState, ...]


class Trouble(Enum):
    """Why a subscription does not move; it has one reason at a time."""

    ABANDONED = "nobody consumes"
    BLOCKED = "too much is unacknowledged"
    UNACKNOWLEDGED = "what was delivered is not acknowledged"
    NO_PERMITS = "consumers ask for nothing"
    TRANSACTION = "an open transaction is in the way"
    THROTTLED = "a dispatch rate holds it"
    STUCK = "the broker does not deliver"


def trouble_of(state: SubscriptionState) -> Trouble | None:
    """None: it moves, or has nothing to do."""
    if not state.backlog:
        return None
    if not state.consumers:
        return Trouble.ABANDONED
    if state.blocked or any(each.blocked for each in state.consumers):
        return Trouble.BLOCKED
    wants_more = any(each.permits > 0 for each in state.consumers)
    if state.unacked and state.is_ackless and wants_more:
        return Trouble.UNACKNOWLEDGED
    if not state.is_silent:
        return None
    if not wants_more:
        return Trouble.NO_PERMITS
    return _undelivered(state) if state.backlog - state.delayed > state.unacked else None


def _undelivered(state: SubscriptionState) -> Trouble:
    if state.open_transactions:
        return Trouble.TRANSACTION
    return Trouble.THROTTLED if state.is_throttled else Trouble.STUCK


def _remedies(state: SubscriptionState, trouble: Trouble) -> str:
    topic, name = state.topic, state.name
    who = str(state.consumers[0]) if state.consumers else ""
    match trouble:
        case Trouble.ABANDONED:
            return (
                f"start a consumer of {name} on {topic} again. Only if these messages are not needed any more: "
                "pulsar-admin topics "
                f"unsubscribe -s {name} {topic}, which loses the backlog of {state.backlog} entries"
            )
        case Trouble.BLOCKED:
            return (
                f"correct the program of {who}: it has to acknowledge what it receives, or to acknowledge it negatively; "
                "restarted, "
                "it receives the messages again. A dead letter topic takes those that cannot be processed. A higher "
                "maxUnackedMessagesPerSubscription or maxUnackedMessagesPerConsumer only postpones this"
            )
        case Trouble.UNACKNOWLEDGED:
            return (
                f"correct the program of {who}: it has to acknowledge what it receives, or hangs while it processes it. "
                "Closed or "
                f"restarted it loses nothing: its {state.unacked} messages are delivered again"
            )
        case Trouble.NO_PERMITS:
            return (
                f"look at the program of {who}: it does not take from its receiver queue what it was sent; it hangs, or "
                "its process "
                "stands still. Restart it: what it did not acknowledge is delivered again"
            )
        case Trouble.TRANSACTION:
            return (
                "pulsar-admin transactions slow-transactions -t 1000 names the open transaction, abort-transaction ends "
                "it: what was "
                f"published and acknowledged within it is undone, and consumers of {topic} read on"
            )
        case Trouble.THROTTLED:
            return (
                f"raise the dispatch rate of {topic} (pulsar-admin topics get-dispatch-rate --applied says which is in force)"
            )
    return (
        f"pulsar-admin topics unload {topic}: clients reconnect and nothing is lost; if it comes again, read the broker's log"
    )


def _troubled(trouble: Trouble, level: str, fine: str) -> Callable[[Subscriptions], Verdict]:
    def judge(subscriptions: Subscriptions) -> Verdict:
        found = [each for each in subscriptions if trouble_of(each) is trouble]
        if not found:
            return Verdict(OK, fine)
        worst = max(found, key=lambda each: each.backlog)
        count = f"{len(found)} subscription{'s' if len(found) > 1 else ''}"
        evidence = f"{trouble.value} in {count}: {named([str(each) for each in found])}; backlog {worst.backlog} entries"
        return Verdict(level, f"{evidence}, {worst.unacked} messages unacknowledged", _remedies(worst, trouble))

    return judge


def cursor_holes(subscriptions: Subscriptions) -> Verdict:
    worst = max(subscriptions, key=lambda each: each.holes, default=None)
    if worst is None or not worst.holes:
        return Verdict(OK, "no holes")
    verdict = by_limits(worst.holes, HOLES_WARN, HOLES_FAIL, f"{worst.holes} holes in {worst}")
    first = (
        f"pulsar-admin topics peek-messages -s {worst.name} -n 1 {worst.topic} shows the first message that is not acknowledged"
    )
    return verdict._replace(
        remedy=f"{first}: let the consumers acknowledge it; a dead letter topic takes what cannot be processed"
    )


def backlog(subscriptions: Subscriptions) -> Verdict:
    worst = max(subscriptions, key=lambda each: each.backlog, default=None)
    if worst is None:
        return Verdict(OK, "no subscriptions")
    level = WARN if worst.backlog >= BACKLOG_WARN else OK
    remedy = f"add consumers to {worst}, or make them faster; a backlog quota on its namespace bounds the disk that it takes"
    return Verdict(level, f"the largest backlog is {worst.backlog} entries, in {worst}", remedy)


def delayed(subscriptions: Subscriptions) -> Verdict:
    worst = max(subscriptions, key=lambda each: each.delayed, default=None)
    if worst is None or worst.delayed < DELAYED_WARN:
        return Verdict(OK, "few messages wait for their time")
    remedy = (
        f"look at what publishes to {worst.topic}: these messages are not stuck, they wait for the delivery time that their "
        "producer gave them, and hold disk and memory until then; pulsar-admin topics set-delayed-delivery --maxDelay bounds it"
    )
    return Verdict(WARN, f"{worst.delayed} entries of {worst} wait for their delivery time", remedy)


def expired(subscriptions: Subscriptions) -> Verdict:
    found = [each for each in subscriptions if each.expired]
    if not found:
        return Verdict(OK, "the time to live took nothing within the hour")
    worst = max(found, key=lambda each: each.expired)
    namespace = worst.topic.partition("://")[2].rpartition("/")[0]
    remedy = (
        f"raise it (pulsar-admin namespaces set-message-ttl {namespace} -ttl SECONDS, or topics set-message-ttl "
        f"{worst.topic}), or "
        f"add consumers to {worst.name}: expired messages are lost to this subscription"
    )
    names = named([str(each) for each in found])
    return Verdict(WARN, f"the time to live took {worst.expired} entries that nobody had consumed: {names}", remedy)


_S = ("subscriptions",)
_LOOK = "its consumers' programs, which the finding names"
CHECKS = (
    Check(
        "stuck-subscriptions",
        _S,
        _troubled(Trouble.STUCK, FAIL, "none"),
        "consumers have permits, there is more, and nothing is delivered",
        "unload the topic: nothing is lost",
    ),
    Check(
        "blocked-subscriptions",
        _S,
        _troubled(Trouble.BLOCKED, FAIL, "none is blocked"),
        "consumers reached the limit of unacknowledged messages",
        f"correct {_LOOK}: they have to acknowledge",
    ),
    Check(
        "unacknowledged-messages",
        _S,
        _troubled(Trouble.UNACKNOWLEDGED, WARN, "consumers acknowledge"),
        "consumers receive and do not acknowledge",
        f"correct {_LOOK}: they have to acknowledge",
    ),
    Check(
        "consumers-without-permits",
        _S,
        _troubled(Trouble.NO_PERMITS, WARN, "consumers ask for messages"),
        "consumers do not take what they were sent, or their process stands still",
        f"look at {_LOOK}, and restart them",
    ),
    Check(
        "transaction-holds-readers",
        _S,
        _troubled(Trouble.TRANSACTION, WARN, "none"),
        "messages behind an open transaction are not delivered",
        "end the transaction: transactions abort-transaction",
    ),
    Check(
        "dispatch-throttled",
        _S,
        _troubled(Trouble.THROTTLED, WARN, "none"),
        "a dispatch rate holds a subscription",
        "raise the dispatch rate",
    ),
    Check(
        "abandoned-subscriptions",
        _S,
        _troubled(Trouble.ABANDONED, WARN, "every backlog has a consumer"),
        "a backlog, and no consumer",
        "start the consumer again; unsubscribe loses the backlog",
    ),
    Check(
        "cursor-holes",
        _S,
        cursor_holes,
        "many ranges are acknowledged behind messages that are not",
        "acknowledge the first one",
    ),
    Check("backlog", _S, backlog, "a backlog of a million entries and more", "add consumers"),
    Check("delayed-messages", _S, delayed, "many messages wait for their delivery time", "look at their producer"),
    Check("expired-messages", _S, expired, "the time to live took messages that nobody consumed", "raise the time to live"),
)
