"""Facts of brokers, by their admin REST, and of bookies by one of theirs: who answers, who is registered, what they run with.

Read only, and each question within a bounded time. Facts of topics are in `topics`, facts from ZooKeeper in `metadata`.
"""

import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from cli.admin.http import Answer, Refused, Unreachable
from cli.admin.request import ADMIN, Request
from cli.doctor.check import Facts
from cli.doctor.checks.bookies import Bookies, Replication
from cli.doctor.checks.cluster import Answering, BrokerState, Process
from cli.doctor.facts.metadata import Quorums
from cli.doctor.facts.network_probe import addresses_in, deaths_at, problems_at, reason_of
from cli.doctor.facts.topics import Asking, asked

BROKERS_MAX = 50
OF_SERVER = (
    "skew_seconds",
    "health",
    "leader_url",
    "load_managers",
    "runtime",
    "ids",
    "known_bookies",
    "cluster_urls",
    "processes",
)
LIST_BOOKIES = "/api/v1/bookie/list_bookies"
UNDER_REPLICATED = "/api/v1/autorecovery/list_under_replicated_ledger/?printmissingreplica=true"
AUDITOR = "/api/v1/autorecovery/who_is_auditor"
REPAIR_STATUS = "/api/v1/autorecovery/status"
START = "start the broker (interpulse standalone, or broker), and read the last lines of its log if it ended by itself"


def server_facts(rest: Asking, url: str, at: Callable[[str], Asking]) -> Facts:
    """Facts from one broker about itself and the cluster; `at` asks the broker of `host:port`. Without an answer all else
    is missing, with the reason."""
    try:
        answer = rest.ask(Request("GET", ADMIN + "clusters"))
    except (Unreachable, Refused) as error:
        answering = unreachable(url, error) if isinstance(error, Unreachable) else _refused(url, error)
        return Facts({"answering": answering}, dict.fromkeys(OF_SERVER, f"no answer of {url}"))
    found: dict[str, Any] = {"answering": Answering(url)}
    missing: dict[str, str] = {}
    _clock(answer, found, missing)
    found["health"] = _text(rest, "brokers/health")
    readers: Mapping[str, Callable[[], Any]] = {
        "leader_url": lambda: _leader(rest),
        "runtime": lambda: asked(rest, "brokers/configuration/runtime"),
        "ids": lambda: _ids(rest),
        "load_managers": lambda: _load_managers(rest, at),
        "known_bookies": lambda: tuple(each["bookieId"] for each in (asked(rest, "bookies/all") or {}).get("bookies", [])),
        "cluster_urls": lambda: _cluster_urls(rest),
        "several": lambda: _several(rest),
    }
    for name, read in readers.items():
        try:
            found[name] = read()
        except (Refused, Unreachable) as error:
            missing[name] = f"{url}: {error}"
    return Facts(found, missing)


def _several(rest: Asking) -> tuple[Process, ...]:
    """Behind the port that was asked, where several share it. Apache's take the word for a cluster, and name brokers."""
    told = asked(rest, "brokers/processes") or []
    return tuple(Process(each["number"], each["phase"], each["starts"]) for each in told if isinstance(each, dict))


def _clock(answer: Answer, found: dict[str, Any], missing: dict[str, str]) -> None:
    date = answer.headers.get("date")
    if date:
        found["skew_seconds"] = parsedate_to_datetime(date).timestamp() - time.time()
    else:
        missing["skew_seconds"] = "the server's answers carry no Date"


def unreachable(url: str, error: Unreachable) -> Answering:
    """Words for an address that gives no answer over HTTP, and what to do."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        remedy = (
            "renew the server's certificate (tlsCertificateFilePath)"
            if "expired" in cause.verify_message
            else "set tlsTrustCertsFilePath of conf/client.conf to the authority that signed the server's certificate, "
            "or have one signed for this host's name"
        )
        return Answering(url, f"its certificate is refused: {cause.verify_message}", remedy)
    if isinstance(cause, ssl.SSLError):
        return Answering(
            url, f"no TLS there ({cause.reason})", "use http:// for webServicePort; https:// is for webServicePortTls"
        )
    if isinstance(cause, TimeoutError):
        remedy = (
            "its process stands still or is overloaded: look at it (top, its log; kill -CONT if it was stopped), and "
            "restart it if it does "
            "not go on. Nothing that was acknowledged is lost"
        )
        return Answering(url, "takes connections, and does not answer in time", remedy)
    if isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError) and cause.errno is not None:
        return Answering(url, reason_of(cause), f"{START}; or correct --admin-url, or webServiceUrl of conf/client.conf")
    remedy = "use the port of webServicePort; brokerServicePort (6650) is for clients alone, and a TLS port wants https://"
    return Answering(url, f"speaks no HTTP ({type(cause).__name__})", remedy)


def _refused(url: str, refused: Refused) -> Answering:
    if refused.status in (401, 403):
        remedy = (
            "correct authPlugin and authParams of conf/client.conf: the token or certificate of a role that the brokers let in "
            "(superUserRoles); interpulse tokens validate checks a token"
        )
        return Answering(url, f"refuses these credentials: {refused}", remedy)
    return Answering(
        url, f"answers HTTP {refused.status}: {refused}", "see what listens there: this is no answer of a broker that is well"
    )


def _text(rest: Asking, path: str) -> str:
    try:
        return rest.ask(Request("GET", ADMIN + path)).body.decode().strip()
    except (Refused, Unreachable) as error:
        return str(error)


def _leader(rest: Asking) -> str:
    """Empty: there is none."""
    try:
        found = asked(rest, "brokers/leaderBroker") or {}
    except Refused as refused:
        if refused.status == 404:
            return ""
        raise
    return str(found.get("brokerId") or found.get("serviceUrl") or found.get("serviceUrlTls") or "")


def _ids(rest: Asking) -> tuple[str, ...]:
    """Ids of the registered brokers; a standalone is its own."""
    ids: list[str] = []
    for cluster in asked(rest, "clusters"):
        ids += asked(rest, f"brokers/{cluster}") or []
    return tuple(dict.fromkeys(ids))


def _load_managers(rest: Asking, at: Callable[[str], Asking]) -> tuple[tuple[str, str], ...]:
    """Id and class of the load manager of each broker that is registered and answers."""
    found = []
    for each in _ids(rest)[:BROKERS_MAX]:
        try:
            found.append((each, str(asked(at(each), "brokers/configuration/runtime")["loadManagerClassName"])))
        except Unreachable:
            continue  # that it does not answer is said by another check
    return tuple(found)


def _cluster_urls(rest: Asking) -> tuple[str, ...]:
    """HTTP addresses of the brokers, as clients get them."""
    found = []
    for cluster in asked(rest, "clusters"):
        data = asked(rest, f"clusters/{cluster}") or {}
        found += addresses_in(str(data.get("serviceUrl") or ""))
    return tuple(dict.fromkeys(found))


# ---- Who is there


def broker_states(
    server: Facts, registered: Mapping[str, Mapping[str, Any]], given: Sequence[str], at: Callable[[str], Asking]
) -> tuple[BrokerState, ...]:
    """States of brokers that the metadata or a broker registers, and of every other address that names one; each is asked.

    `given`: the addresses of webServiceUrl.
    """
    ids = tuple(dict.fromkeys((*registered, *server.found.get("ids", ()))))[:BROKERS_MAX]
    services = {name: _service_urls(registered.get(name, {})) for name in ids}
    others = [each for each in (*server.found.get("cluster_urls", ()), *given) if each not in ids]
    if server.found["answering"].problem and not registered:
        others = [each for each in others if each not in given] if len(given) == 1 else others
    down = problems_at(
        [*ids, *others, *(address for urls in services.values() for url in urls for address in addresses_in(url))]
    )
    states = []
    for name in ids:
        problems = [f"{address} {down[address]}" for url in services[name] for address in addresses_in(url) if address in down]
        problem = down.get(name, "") or "; ".join(problems) or _silence(at(name))
        states.append(BrokerState(name, problem, next(iter(services[name]), "")))
    states += [BrokerState(each, down[each], is_registered=False) for each in others if each in down]
    return tuple(states)


def _service_urls(data: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(data[key]) for key in ("pulsarServiceUrl", "pulsarServiceUrlTls") if data.get(key))


def _silence(rest: Asking) -> str:
    """Why a broker that takes connections does not answer; empty: it does, with whatever."""
    try:
        rest.ask(Request("GET", ADMIN + "brokers/ready"))
    except Refused:
        return ""
    except Unreachable as error:
        return "takes connections, and does not answer" if isinstance(error.__cause__, TimeoutError) else ""
    return ""


def bookies_by_rest(names: Sequence[str], quorums: Quorums, ids: Sequence[str]) -> Bookies:
    """Facts that are known without ZooKeeper: bookies that were ever part of the cluster, tried one by one.

    A standalone's bookie is inside its process, and has a name that looks like an address and is none.
    """
    inside = len(names) == 1 and len(ids) <= 1
    down = {} if inside else deaths_at(names)
    return Bookies(tuple(names), (), (), down, quorums.ensemble, quorums.write_quorum)


def bookie_facts(bookie: Asking | None, quorums: Quorums) -> Facts:
    """Facts from a bookie's HTTP: the other bookies, and replication."""
    if bookie is None:
        return Facts({}, {})
    try:
        writable, read_only = (_listed(bookie, kind) for kind in ("rw", "ro"))
        bookies = Bookies(writable, read_only, (), deaths_at((*writable, *read_only)), quorums.ensemble, quorums.write_quorum)
        replication = _replication(bookie, bookies)
    except (Unreachable, Refused) as error:
        return Facts({}, dict.fromkeys(("bookies", "replication"), f"the bookie of --bookie-url: {error}"))
    return Facts({"bookies": bookies, "replication": replication}, {})


def _listed(bookie: Asking, kind: str) -> tuple[str, ...]:
    return tuple(sorted(json.loads(bookie.ask(Request("GET", f"{LIST_BOOKIES}?type={kind}")).body or b"{}")))


def _replication(bookie: Asking, bookies: Bookies) -> Replication:
    """404 is Apache's answer for none."""
    lacking = json.loads(_or_nothing(bookie, UNDER_REPLICATED) or "{}")
    missing = dict.fromkeys(name for names in lacking.values() for name in names)
    enabled = bool(json.loads(_or_nothing(bookie, REPAIR_STATUS) or "{}").get("enabled", True))
    auditor = _or_nothing(bookie, AUDITOR).removeprefix("Auditor: ").strip() or None
    ids = tuple(sorted(int(each) for each in lacking))
    return Replication(ids, tuple(missing), enabled, auditor, len(bookies.serving), bookies.write_quorum)


def _or_nothing(bookie: Asking, path: str) -> str:
    try:
        return bookie.ask(Request("GET", path)).body.decode()
    except Refused as refused:
        if refused.status == 404:
            return ""
        raise
