"""Facts of a cluster, by its admin REST and a bookie's HTTP: read only, with a bound on how many topics are looked at."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from cli.admin.http import Answer, Refused, Unreachable
from cli.admin.request import ADMIN, Request, topic_name
from cli.doctor.checks import Facts
from cli.doctor.cluster_checks import Bookies, CompactionState, SubscriptionState

TOPICS_MAX = 500
BROKERS_MAX = 50
SLOW_TRANSACTION_MS = 600_000
COMPACTION = "__compaction"
_ALL = ("skew_seconds", "health", "leader_url", "bookies", "load_managers", "slow_transactions", "subscriptions", "compactions")
_OF_BOOKIE = ("read_only_bookies", "under_replicated")
LIST_BOOKIES = "/api/v1/bookie/list_bookies"
UNDER_REPLICATED = "/api/v1/autorecovery/list_under_replicated_ledger/"


class Asking(Protocol):
    """The admin REST."""

    def ask(self, request: Request) -> Answer: ...


def cluster_facts(
    rest: Asking, settings: Mapping[str, str], at: Callable[[str], Asking], topics_max: int = TOPICS_MAX
) -> Facts:
    """What the brokers say; `at` asks the one of `host:port`. Where nobody answers all facts are missing, with the address."""
    try:
        answer = rest.ask(Request("GET", ADMIN + "clusters"))
    except Unreachable as error:
        return Facts({}, dict.fromkeys(_ALL, f"no server answers: {error}"))
    except Refused as refused:
        return Facts({}, dict.fromkeys(_ALL, f"the server refuses: {refused}"))
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    date = answer.headers.get("date")
    if date:
        found["skew_seconds"] = parsedate_to_datetime(date).timestamp() - time.time()
    else:
        missing["skew_seconds"] = "the server's answers carry no Date"
    found["health"] = _text(rest, "brokers/health")
    topics = _Topics(topics_max)
    readers: dict[str, Callable[[Asking], Any]] = {
        "leader_url": _leader,
        "bookies": _bookies(settings),
        "load_managers": lambda rest: _load_managers(rest, at),
        "slow_transactions": _slow_transactions,
        "subscriptions": topics.subscriptions,
        "compactions": topics.compactions,
    }
    for name, read in readers.items():
        try:
            found[name] = read(rest)
        except Refused as refused:
            missing[name] = f"the server refuses: {refused}"
        except Unreachable as error:
            missing[name] = f"no server answers: {error}"
    return Facts(found, missing)


def _json(rest: Asking, path: str) -> Any:
    body = rest.ask(Request("GET", ADMIN + path)).body
    return json.loads(body) if body else None


def _text(rest: Asking, path: str) -> str:
    try:
        return rest.ask(Request("GET", ADMIN + path)).body.decode().strip()
    except (Refused, Unreachable) as error:
        return str(error)


def _leader(rest: Asking) -> str:
    return str((_json(rest, "brokers/leaderBroker") or {}).get("serviceUrl", ""))


class _bookies:  # noqa: N801 - a function with its settings
    """How many there are, from what brokers see, who tell all that have not been decommissioned."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def __call__(self, rest: Asking) -> Bookies:
        listed = (_json(rest, "bookies/all") or {}).get("bookies", [])
        return Bookies(len(listed), *_wanted(self._settings), are_known=True)


def _wanted(settings: Mapping[str, str]) -> tuple[int, int]:
    ensemble, quorum = (int(settings.get(f"managedLedgerDefault{name}") or 1) for name in ("EnsembleSize", "WriteQuorum"))
    return ensemble, quorum


def _load_managers(rest: Asking, at: Callable[[str], Asking]) -> tuple[tuple[str, str], ...]:
    """Of each broker that is registered, its id and the class of its load manager; of a standalone none."""
    ids: list[str] = []
    for cluster in _json(rest, "clusters"):
        ids += _json(rest, f"brokers/{cluster}") or []
    known = list(dict.fromkeys(ids))[:BROKERS_MAX]
    return tuple((each, str(_json(at(each), "brokers/configuration/runtime")["loadManagerClassName"])) for each in known)


def _slow_transactions(rest: Asking) -> tuple[str, ...]:
    """Their ids."""
    body = rest.ask(Request("GET", f"/admin/v3/transactions/slowTransactions/{SLOW_TRANSACTION_MS}")).body
    return tuple(sorted(json.loads(body or b"{}")))


class _Topics:
    """What the stats of the first topics say, in their order; each is asked once."""

    def __init__(self, topics_max: int) -> None:
        self._topics_max = topics_max
        self._seen: list[tuple[str, Mapping[str, Any]]] | None = None

    def subscriptions(self, rest: Asking) -> tuple[SubscriptionState, ...]:
        """Those that clients have."""
        return tuple(
            _state(topic, name, each)
            for topic, stats in self._stats(rest)
            for name, each in (stats.get("subscriptions") or {}).items()
            if name != COMPACTION
        )

    def compactions(self, rest: Asking) -> tuple[CompactionState, ...]:
        """Of topics that are compacted."""
        return tuple(
            _compaction(topic, stats) for topic, stats in self._stats(rest) if COMPACTION in (stats.get("subscriptions") or {})
        )

    def _stats(self, rest: Asking) -> list[tuple[str, Mapping[str, Any]]]:
        if self._seen is None:
            self._seen = list(self._asked(rest))
        return self._seen

    def _asked(self, rest: Asking) -> Iterator[tuple[str, Mapping[str, Any]]]:
        left = self._topics_max
        for tenant in _json(rest, "tenants"):
            for namespace in _json(rest, f"namespaces/{tenant}"):
                for topic in _json(rest, f"persistent/{namespace}")[:left]:
                    left -= 1
                    try:
                        yield topic, _json(rest, f"{topic_name(topic).path}/stats")
                    except Refused:
                        continue  # deleted meanwhile, or of a broker that is going


def _compaction(topic: str, stats: Mapping[str, Any]) -> CompactionState:
    about = stats.get("compaction") or {}
    failed, succeeded = (int(about.get(f"lastCompaction{name}Timestamp", 0)) for name in ("Failed", "Succeed"))
    return CompactionState(topic, int(stats["subscriptions"][COMPACTION].get("msgBacklog", 0)), failed > succeeded)


def _state(topic: str, name: str, stats: Mapping[str, Any]) -> SubscriptionState:
    consumers = stats.get("consumers") or []
    permits = [int(each.get("availablePermits", 0)) for each in consumers]
    return SubscriptionState(
        topic=topic,
        name=name,
        backlog=int(stats.get("msgBacklog", 0)),
        consumers=len(consumers),
        rate_out=float(stats.get("msgRateOut", 0)),
        unacked=int(stats.get("unackedMessages", 0)),
        blocked=bool(stats.get("blockedSubscriptionOnUnackedMsgs")),
        permits=max(permits) if permits else None,
        holes=int(stats.get("nonContiguousDeletedMessagesRanges", 0)),
    )


def bookie_facts(bookie: Asking | None, settings: Mapping[str, str]) -> Facts:
    """What a bookie's HTTP says of the others and of replication."""
    if bookie is None:
        return Facts({}, dict.fromkeys(_OF_BOOKIE, "no --bookie-url was given"))
    try:
        writable, read_only = (_listed(bookie, kind) for kind in ("rw", "ro"))
        found = {"bookies": Bookies(len(writable), *_wanted(settings)), "read_only_bookies": read_only}
        return Facts(found | {"under_replicated": _under_replicated(bookie)}, {})
    except Unreachable as error:
        return Facts({}, dict.fromkeys(_OF_BOOKIE, f"no bookie answers: {error}"))
    except Refused as refused:
        return Facts({}, dict.fromkeys(_OF_BOOKIE, f"the bookie refuses: {refused}"))


def _listed(bookie: Asking, kind: str) -> tuple[str, ...]:
    return tuple(sorted(json.loads(bookie.ask(Request("GET", f"{LIST_BOOKIES}?type={kind}")).body or b"{}")))


def _under_replicated(bookie: Asking) -> int:
    """404 is Apache's answer for none."""
    try:
        return len(json.loads(bookie.ask(Request("GET", UNDER_REPLICATED)).body or b"{}"))
    except Refused as refused:
        if refused.status == 404:
            return 0
        raise
