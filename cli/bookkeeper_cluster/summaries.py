"""Summaries of a cluster: counts, and the room on its disks. For `clusterinfo`, `bookieinfo` and HTTP."""

import asyncio
import contextlib
from collections.abc import Mapping

from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.ports import DiskSpace, ExtendedBookie
from bookkeeper.repair.auditor.election import elected_auditor
from cli.bookkeeper_cluster.cluster import Cluster
from cli.bookkeeper_cluster.replication import lacking, marks_in
from metadata.store import MetadataStore
from ports.network.tls import RenewedTls
from wire.bookie.codes import BookieError

ANSWER_SECONDS = 30.0
ASKED_AT_ONCE_MAX = 32


async def cluster_summary(store: MetadataStore) -> Mapping[str, object]:
    """Apache's ClusterInfo. MetadataError."""
    cluster = Cluster(store)
    auditor = await elected_auditor(store)
    async with contextlib.aclosing(lacking(store)) as ledgers:
        is_lacking = await anext(ledgers, None) is not None
    total, writable, read_only = [len(await names()) for names in (cluster.known, cluster.writable, cluster.read_only)]
    return {
        "auditorElected": auditor is not None,
        "auditorId": auditor or "",
        "clusterUnderReplicated": is_lacking,
        "ledgerReplicationEnabled": await marks_in(store).is_enabled(),
        "totalBookiesCount": total,
        "writableBookiesCount": writable,
        "readonlyBookiesCount": read_only,
        "unavailableBookiesCount": total - writable - read_only,
    }


async def disk_spaces(store: MetadataStore, tls: RenewedTls | None) -> tuple[dict[str, DiskSpace], dict[str, str]]:
    """Disk space of the writable bookies, and the reasons why some of them did not answer. MetadataError."""
    turns = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def ask(bookie_id: str) -> DiskSpace | str:
        bookie = bookies.get(bookie_id)
        if not isinstance(bookie, ExtendedBookie):
            return "its place is unknown"
        try:
            async with turns:
                return await bookie.disk_space()
        except BookieError as error:
            return str(error)

    bookies = NetworkBookies(store, ANSWER_SECONDS, tls=tls)
    try:
        await bookies.open()
        names = sorted(bookies)
        answers = dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))
    finally:
        await bookies.close()
    spaces = {name: answer for name, answer in answers.items() if isinstance(answer, DiskSpace)}
    return spaces, {name: answer for name, answer in answers.items() if isinstance(answer, str)}
