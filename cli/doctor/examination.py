"""One examination: which facts are gathered, from whom, and all the checks that judge them. Decides nothing of what is wrong.

A broker is asked first: it says where ZooKeeper is and which quorums are wanted, where no configuration file does.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.admin.http import AdminConnection, Refused, Unreachable
from cli.client_configuration import ClientConfiguration, load_client_configuration
from cli.configuration.verdicts import BOOKIE, BROKER
from cli.doctor.check import Facts
from cli.doctor.checks import bookies as bookie_checks
from cli.doctor.checks import cluster as cluster_checks
from cli.doctor.checks import credentials as credential_checks
from cli.doctor.checks import machine as machine_checks
from cli.doctor.checks import settings as settings_checks
from cli.doctor.checks import storage as storage_checks
from cli.doctor.checks import subscriptions as subscription_checks
from cli.doctor.checks import topics as topic_checks
from cli.doctor.checks.bookies import Bookies
from cli.doctor.facts.cluster import OF_SERVER, bookie_facts, bookies_by_rest, broker_states, server_facts
from cli.doctor.facts.credentials import certificate_facts, token_facts
from cli.doctor.facts.local import kind_of_settings, machine_facts, settings_facts
from cli.doctor.facts.metadata import metadata_facts, quorums_of
from cli.doctor.facts.network_probe import addresses_in
from cli.doctor.facts.storage import storage_facts
from cli.doctor.facts.topics import TOPICS_PER_BUNDLE, Topics, slow_transactions
from ports.properties import parse_properties

CHECKS = (
    *cluster_checks.CHECKS,
    *bookie_checks.CHECKS,
    *topic_checks.CHECKS,
    *subscription_checks.CHECKS,
    *settings_checks.CHECKS,
    *credential_checks.CHECKS,
    *storage_checks.CHECKS,
    *machine_checks.CHECKS,
)
TIMEOUT_SECONDS = 10.0
OF_TOPICS = ("subscriptions", "compactions", "quotas", "rate_limited", "unbounded", "bundles", "refused_topics")
OF_CLUSTER = ("answering", "brokers", "bookies", "clusters", "configured_cluster", "metadata", *OF_SERVER, "slow_transactions")


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of the command line."""

    admin_url: str
    bookie_url: str
    config: Path | None
    data_directory: Path
    offline: bool
    deep: bool
    topics_max: int
    patience_seconds: float
    transaction_seconds: float


class Brokers:
    """Each by itself, by the scheme of the address that was given; `close` ends all connections."""

    def __init__(self, client: ClientConfiguration) -> None:
        self._client = client
        self._scheme = client.web_service_urls()[0].partition("://")[0]
        self._open: dict[str, AdminConnection] = {}

    def at(self, address: str) -> AdminConnection:
        if address not in self._open:
            url = address if "://" in address else f"{self._scheme}://{address}"
            self._open[address] = AdminConnection(self._client._replace(web_service_url=url), TIMEOUT_SECONDS)
        return self._open[address]

    def close(self) -> None:
        for each in self._open.values():
            each.close()


def facts_of(asked: Asked) -> Facts:
    """OSError, MalformedProperties, ConfigurationError."""
    settings = {} if asked.config is None else {each.key: each.value for each in parse_properties(asked.config.read_text())}
    kind = kind_of_settings(settings, asked.config)
    client = load_client_configuration()
    if asked.admin_url:
        client = client._replace(web_service_url=asked.admin_url)
    if asked.offline:
        cluster = Facts({}, dict.fromkeys((*OF_CLUSTER, *OF_TOPICS), "--offline: no server is asked"))
    else:
        brokers = Brokers(client)
        try:
            cluster = _cluster(asked, settings, kind, client, brokers)
        finally:
            brokers.close()
    runs = "health" in cluster.found
    shown = [] if asked.offline else _behind_tls(client, cluster)
    credentials = {"certificates": certificate_facts(settings, client, shown), "tokens": token_facts(settings, client)}
    return merged(
        machine_facts(asked.data_directory),
        storage_facts(asked.data_directory, settings, deep=asked.deep),
        settings_facts(settings, asked.config, kind, server_runs=runs),
        Facts(credentials, {}),
        cluster,
    )


def merged(*parts: Facts) -> Facts:
    """Later ones win."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for part in parts:
        found |= part.found
        missing |= part.missing
    return Facts(found, missing)


def _cluster(asked: Asked, settings: Mapping[str, str], kind: str, client: ClientConfiguration, brokers: Brokers) -> Facts:
    """Facts from servers. A bookie's configuration alone has no broker to ask."""
    urls = client.web_service_urls()
    is_asked = bool(asked.admin_url) or kind != BOOKIE
    server = (
        _server(brokers, urls) if is_asked else Facts({}, dict.fromkeys(("answering", *OF_SERVER), "no --admin-url was given"))
    )
    runtime = {key: str(value) for key, value in server.found.get("runtime", {}).items()}
    known = {**runtime, **settings}
    quorums = quorums_of(known)
    metadata = metadata_facts(settings, runtime, quorums)
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    if "answering" in server.found:
        given = [address for url in urls for address in addresses_in(url)]
        found["brokers"] = broker_states(server, metadata.found.get("registered", {}), given, brokers.at)
    own = settings.get("clusterName", "") if kind == BROKER else ""
    if own:
        found["configured_cluster"] = own
    else:
        missing["configured_cluster"] = "no --config of a broker was given"
    seen = metadata.found.get("metadata_bookies")
    if isinstance(seen, Bookies):
        found["bookies"] = seen
    elif "known_bookies" in server.found:
        found["bookies"] = bookies_by_rest(server.found["known_bookies"], quorums, server.found.get("ids", ()))
    else:
        missing["bookies"] = server.missing.get("known_bookies", "their list is unknown")
    bookie = bookie_facts(brokers.at(asked.bookie_url), quorums) if asked.bookie_url and seen is None else Facts({}, {})
    return merged(server, metadata, Facts(found, missing), _topics(asked, server, runtime, brokers, urls), bookie)


def _server(brokers: Brokers, urls: list[str]) -> Facts:
    """The first of the addresses that answers; the first one's failure where none does."""
    first: Facts | None = None
    for url in urls:
        facts = server_facts(brokers.at(url), url, brokers.at)
        if not facts.found["answering"].problem:
            return facts
        first = first or facts
    assert first is not None
    return first


def _topics(asked: Asked, server: Facts, runtime: Mapping[str, str], brokers: Brokers, urls: list[str]) -> Facts:
    reason = "no broker answers"
    if "runtime" not in server.found:
        return Facts({}, dict.fromkeys((*OF_TOPICS, "slow_transactions"), server.missing.get("runtime", reason)))
    rest = brokers.at(server.found["answering"].url)
    now = time.time() + server.found.get("skew_seconds", 0.0)
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    per_bundle = int(runtime.get("loadBalancerNamespaceBundleMaxTopics") or TOPICS_PER_BUNDLE)
    topics = Topics(rest, now, asked.topics_max, asked.patience_seconds, per_bundle)
    try:
        topics.read()
        found |= topics.facts()
    except (Refused, Unreachable) as error:
        missing |= dict.fromkeys(OF_TOPICS, f"the server says: {error}")
    try:
        found["slow_transactions"] = slow_transactions(rest, now, asked.transaction_seconds)
    except (Refused, Unreachable) as error:
        missing["slow_transactions"] = f"the server says: {error}"
    return Facts(found, missing)


def _behind_tls(client: ClientConfiguration, cluster: Facts) -> list[str]:
    """Addresses whose certificate is looked at: those of https, and of brokers that advertise TLS."""
    urls = [url for url in client.web_service_urls() if url.startswith("https://")]
    urls += [each.service_url for each in cluster.found.get("brokers", ()) if each.service_url.startswith("pulsar+ssl://")]
    return [address for url in urls for address in addresses_in(url)]
