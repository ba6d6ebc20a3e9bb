"""Facts of a cluster's ZooKeeper: bookies, brokers, who leads and owns, what lacks copies, ledgers. Reads, with bounds.

Where it is is said by the configuration, or by a broker. Its servers are tried one by one, then one session is opened.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.protobuf import text_format

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ledger_metadata.layouts import UnknownLayout, parse_layout
from bookkeeper.ledger_metadata.paths import LAYOUT
from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.rack_data import MalformedRackData, parse_rack_data
from bookkeeper.repair.auditor.election import elected_auditor
from bookkeeper.repair.errors import RepairError
from bookkeeper.repair.registered import COOKIES
from cli.bookkeeper_cluster.cluster import Cluster, ClusterFailed
from cli.bookkeeper_cluster.replication import lacking, marks_in
from cli.doctor.check import Facts
from cli.doctor.checks.bookies import Bookies, Ledgers, Replication
from cli.doctor.checks.cluster import MetadataServers, Owner
from cli.doctor.facts.network_probe import NO_ADDRESS, deaths_at, problems_at
from managed_ledger.errors import ManagedLedgerError
from managed_ledger.ledgers.info import decode_info
from metadata.store import MetadataError, MetadataStore
from metadata.zookeeper.connect_string import parse_service_uri, servers_of
from ports.clock import RealClock
from wire.generated.ledger_metadata_pb2 import CookieFormat

ANSWER_SECONDS = 8.0
SESSION_SECONDS = 10.0
LEDGERS_MAX = 2_000
"""Ledgers whose metadata is read."""
LACKING_MAX = 10_000
OWNERS_MAX = 1_000
ORPHAN_AGE_MS = 600_000
"""A ledger is made just before it is named."""
_OF_METADATA = ("registered", "clusters", "owners", "replication", "ledgers", "ledger_layout", "metadata_bookies")
_MADE_FOR, _CURSOR = "pulsar/managed-ledger", "pulsar/cursor"


@dataclass(frozen=True, slots=True)
class Quorums:
    """Quorums that brokers ask of the bookies."""

    ensemble: int
    write_quorum: int
    racks_min: int = 0


def quorums_of(settings: Mapping[str, str]) -> Quorums:
    """Settings of a configuration file's text or a broker's runtime configuration; where a key is missing, its default."""
    ensemble, write = (_number(settings, f"managedLedgerDefault{name}", 2) for name in ("EnsembleSize", "WriteQuorum"))
    enforced = settings.get("bookkeeperClientEnforceMinNumRacksPerWriteQuorum", "").lower() == "true"
    return Quorums(ensemble, write, _number(settings, "bookkeeperClientMinNumRacksPerWriteQuorum", 2) if enforced else 0)


def _number(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key, "")
    return int(text) if text.isdigit() else default


def servers_in(settings: Mapping[str, str]) -> str:
    """`host:port,host:port/chroot` of the keys that say where metadata is; empty: none does. MetadataError."""
    for key in ("metadataStoreUrl", "zookeeperServers", "zkServers"):
        value = settings.get(key, "")
        if value and (key != "metadataStoreUrl" or value.startswith("zk:") or ("://" not in value and ":" in value)):
            return servers_of(value)
    uri = settings.get("metadataServiceUri", "")
    return parse_service_uri(uri).servers if uri.startswith(("zk", "metadata-store:zk")) else ""


def metadata_facts(settings: Mapping[str, str], told: Mapping[str, str], quorums: Quorums) -> Facts:
    """Everything that ZooKeeper knows; missing, with the reason, where there is none or it does not answer.

    `told` is what a broker runs with: it may name ZooKeeper as only the brokers' own network does.
    """
    try:
        own = servers_in(settings)
        servers = own or servers_in(told)
    except MetadataError as error:
        return Facts({"metadata": MetadataServers((), {}, str(error))}, dict.fromkeys(_OF_METADATA, str(error)))
    if not servers:
        return Facts({}, dict.fromkeys(("metadata", *_OF_METADATA), "no address of ZooKeeper is known: a standalone has none"))
    hosts = tuple(servers.partition("/")[0].split(","))
    down = problems_at(hosts)
    if not own and set(down.values()) == {NO_ADDRESS} and len(down) == len(hosts):
        return Facts({}, dict.fromkeys(("metadata", *_OF_METADATA), f"ZooKeeper, at {servers} for the brokers, {NO_ADDRESS}"))
    if len(down) == len(hosts):
        reason = "no ZooKeeper server answers"
        return Facts({"metadata": MetadataServers(hosts, down, reason)}, dict.fromkeys(_OF_METADATA, reason))
    logging.getLogger("metadata").setLevel(logging.CRITICAL)
    return asyncio.run(_read(servers, MetadataServers(hosts, down), quorums, settings))


async def _read(servers: str, seen: MetadataServers, quorums: Quorums, settings: Mapping[str, str]) -> Facts:
    from metadata.zookeeper.kazoo_session import KazooSession
    from metadata.zookeeper.store import ZooKeeperStore

    try:
        store = await ZooKeeperStore.open(partial(KazooSession, servers, SESSION_SECONDS), ANSWER_SECONDS, servers)
    except MetadataError as error:
        return Facts({"metadata": seen._replace(problem=str(error))}, dict.fromkeys(_OF_METADATA, str(error)))
    found: dict[str, Any] = {"metadata": seen}
    missing: dict[str, str] = {}
    try:
        bookies = await _bookies(store, quorums)
        found["metadata_bookies"] = bookies
        readers: Mapping[str, Callable[[], Any]] = {
            "registered": lambda: _documents(store, "/loadbalance/brokers"),
            "clusters": lambda: _clusters(store),
            "owners": lambda: _owners(store),
            "replication": lambda: _replication(store, bookies),
            "ledger_layout": lambda: _layout(store),
            "ledgers": lambda: _ledgers(store, bookies),
        }
        for name, read in readers.items():
            try:
                found[name] = await read()
            except (ClusterFailed, LedgerError, RepairError) as error:
                missing[name] = str(error)
        leader = await _document(store, "/loadbalance/leader")
        if found.get("registered"):
            found["leader_url"] = str(leader.get("brokerId") or leader.get("serviceUrl") or "")
        cookie = await _cookie(store, settings)
        if cookie is not None:
            found["cookie"] = cookie
    except MetadataError as error:
        missing |= {name: str(error) for name in _OF_METADATA if name not in found}
    finally:
        await store.close()
    return Facts(found, missing)


async def _document(store: MetadataStore, path: str) -> Mapping[str, Any]:
    """Empty for what is not there, or no JSON."""
    node = await store.get(path)
    try:
        document = json.loads(node.value) if node is not None else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


async def _documents(store: MetadataStore, path: str) -> Mapping[str, Mapping[str, Any]]:
    return {name: await _document(store, f"{path}/{name}") for name in await store.children(path)}


async def _clusters(store: MetadataStore) -> tuple[str, ...]:
    return tuple(name for name in await store.children("/admin/clusters") if name != "global")


async def _bookies(store: MetadataStore, quorums: Quorums) -> Bookies:
    cluster = Cluster(store)
    writable, read_only, known = await cluster.writable(), await cluster.read_only(), await cluster.known()
    registered = {*writable, *read_only}
    racks: Mapping[str, str] = {}
    node = await store.get("/bookies")
    if node is not None:
        try:
            racks = parse_rack_data(node.value)
        except MalformedRackData:
            racks = {}  # brokers keep to what they knew
    addresses = {name: str(where) for name in registered if (where := await _address(cluster, name))}
    down = deaths_at(addresses.values())
    unreachable = {name: down[address] for name, address in sorted(addresses.items()) if address in down}
    lost = tuple(name for name in known if name not in registered)
    quorum = (quorums.ensemble, quorums.write_quorum)
    return Bookies(tuple(writable), tuple(read_only), lost, unreachable, *quorum, racks, quorums.racks_min)


async def _address(cluster: Cluster, name: str) -> str:
    """The address that the bookie registered, or that its name has; empty if neither tells it."""
    from bookkeeper.network.network_bookies import address_in, decode_address

    info = await cluster.service_info(name)
    where = address_in(name) if info is None else decode_address(name, info)
    return "" if where is None else f"{where.host}:{where.port}"


async def _replication(store: MetadataStore, bookies: Bookies) -> Replication:
    ids, missing = [], dict[str, None]()
    async for each in lacking(store):
        ids.append(each.ledger_id)
        missing.update(dict.fromkeys(each.what.missing_replicas))
        if len(ids) >= LACKING_MAX:
            break
    enabled, auditor = await marks_in(store).is_enabled(), await elected_auditor(store)
    return Replication(tuple(ids), tuple(missing), enabled, auditor, len(bookies.serving), bookies.write_quorum)


async def _layout(store: MetadataStore) -> str:
    node = await store.get(LAYOUT)
    if node is None:
        return "it is not there: no cluster was made here (interpulse initialize-cluster-metadata), or the path is another"
    try:
        parse_layout(node.value)
    except UnknownLayout as error:
        return str(error)
    return ""


async def _owners(store: MetadataStore) -> tuple[Owner, ...]:
    found: list[Owner] = []
    for tenant in await store.children("/namespace"):
        for namespace in await store.children(f"/namespace/{tenant}"):
            for bundle in await store.children(f"/namespace/{tenant}/{namespace}"):
                path = f"{tenant}/{namespace}/{bundle}"
                document = await _document(store, f"/namespace/{path}")
                url = str(document.get("httpUrl") or document.get("httpUrlTls") or "")
                if url:
                    found.append(Owner(path, url.partition("://")[2].rstrip("/")))
                if len(found) >= OWNERS_MAX:
                    return tuple(found)
    return tuple(found)


# ---- Ledgers


async def _ledgers(store: MetadataStore, bookies: Bookies) -> Ledgers:
    """The newest are not the first: ids ascend, and so does the order in which they are read."""
    there = {*bookies.writable, *bookies.read_only} - set(bookies.unreachable)
    looked, lost, orphans = 0, list[tuple[int, tuple[str, ...]]](), list[tuple[int, str]]()
    lists: dict[str, frozenset[int] | None] = {}
    async for ledger_id, metadata in Cluster(store).ledgers():
        if looked >= LEDGERS_MAX:
            break
        looked += 1
        if isinstance(metadata, LedgerError):
            continue
        gone = next((segment.bookies for segment in metadata.segments if not there.intersection(segment.bookies)), None)
        if gone is not None:
            lost.append((ledger_id, gone))
        owner = await _orphaned_by(store, ledger_id, metadata, lists)
        if owner:
            orphans.append((ledger_id, owner))
    return Ledgers(looked, tuple(lost), tuple(orphans))


async def _orphaned_by(
    store: MetadataStore, ledger_id: int, metadata: LedgerMetadata, lists: dict[str, frozenset[int] | None]
) -> str:
    """The managed ledger that a ledger was made for and that does not name it; empty: it has an owner, or that is not known."""
    name = metadata.custom_metadata.get(_MADE_FOR, b"").decode(errors="replace")
    is_young = RealClock().now_ms() - (metadata.created_ms or 0) < ORPHAN_AGE_MS
    if not name or _CURSOR in metadata.custom_metadata or is_young:
        return ""
    if name not in lists:
        lists[name] = await _listed(store, name)
    listed = lists[name]
    return name if listed is not None and ledger_id not in listed else ""


async def _listed(store: MetadataStore, name: str) -> frozenset[int] | None:
    """The ledgers that a managed ledger names; None: they cannot be read."""
    node = await store.get(f"/managed-ledgers/{name}")
    if node is None:
        return frozenset()
    try:
        return frozenset(each.ledger_id for each in decode_info(name, node.value).ledgers)
    except ManagedLedgerError:
        return None


# ---- A bookie's own cookie


async def _cookie(store: MetadataStore, settings: Mapping[str, str]) -> str | None:
    """Differences of the cluster's cookie from this bookie's configuration; empty: none. None: no cookie."""
    host, port = settings.get("advertisedAddress", ""), settings.get("bookiePort") or "3181"
    bookie_id = settings.get("bookieId") or (f"{host}:{port}" if host else "")
    node = await store.get(f"{COOKIES}/{bookie_id}") if bookie_id else None
    return None if node is None else cookie_problem(bookie_id, node.value.decode(errors="replace"), settings)


def cookie_problem(bookie_id: str, cookie: str, settings: Mapping[str, str]) -> str:
    """Empty when the directories of a cookie (Apache's form: its version, then text) are those of this configuration."""
    try:
        told = text_format.Parse(cookie.partition("\n")[2], CookieFormat(), allow_unknown_field=True)
    except text_format.ParseError as error:
        return f"the cookie of {bookie_id} cannot be read: {error}"
    wanted = settings.get("journalDirectories") or settings.get("journalDirectory", "")
    ledgers = ",".join(told.ledgerDirs.split("\t")[1:])
    pairs = (
        ("journalDirectories", wanted, told.journalDir),
        ("ledgerDirectories", settings.get("ledgerDirectories", ""), ledgers),
    )
    for key, configured, known in pairs:
        if configured and known and configured != known:
            return f"the cookie of {bookie_id} says {key}={known}, this configuration {configured}: the bookie does not start"
    return ""
