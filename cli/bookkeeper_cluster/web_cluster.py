"""WebCluster: what a bookie's HTTP asks about the cluster, done as the shell's commands do it.

Satisfies `bookie.web.cluster_port.ClusterPort`. Each call learns the cluster anew, as Apache's does. Work that goes on
after an answer is bounded: BACKGROUND_MAX at a time; `close` ends it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from bookie.web.cluster_port import ClusterRefused
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.auditor.election import elected_auditor
from bookkeeper.repair.decommission import decommission
from bookkeeper.repair.recover import recover
from bookkeeper.repair.registered import delete_cookie
from cli.bookkeeper_cluster import replication
from cli.bookkeeper_cluster.cluster import Cluster, ClusterFailed, NotThere, checked_bookie_id
from cli.bookkeeper_cluster.formatting import entry_text, metadata_json, readable
from cli.bookkeeper_cluster.ledger_access import LedgerAccess, open_ledgers
from cli.bookkeeper_cluster.replication import progress_line
from cli.bookkeeper_cluster.summaries import cluster_summary, disk_spaces
from cli.bookkeeper_cluster.trial import ON_ONE_BOOKIE, write_trial
from metadata.store import MetadataError, MetadataStore
from ports.logs import line
from ports.network.tls import RenewedTls
from wire.bookie.codes import BookieError

P = ParamSpec("P")
T = TypeVar("T")
BACKGROUND_MAX = 4
SANITY_ENTRIES = 10
SANITY_SECONDS = 5.0
FAILURES = (ClusterFailed, LedgerError, MetadataError, BookieError)
_log = logging.getLogger("interpulse")


def _refusing(
    method: Callable[Concatenate["WebCluster", P], Awaitable[T]],
) -> Callable[Concatenate["WebCluster", P], Coroutine[Any, Any, T]]:
    """Gives a failure its status: 404 for a missing thing, 500 for the rest."""

    async def run(self: "WebCluster", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(self, *args, **kwargs)
        except NotThere as error:
            raise ClusterRefused(str(error), 404) from error
        except FAILURES as error:
            raise ClusterRefused(str(error), 500) from error

    return run


class WebCluster:
    """The cluster for the bookie with this id. `close` before the store is closed."""

    def __init__(self, store: MetadataStore, bookie_id: str, tls: RenewedTls | None) -> None:
        self._store, self._bookie_id, self._tls = store, bookie_id, tls
        self._background: set[asyncio.Task[None]] = set()
        self._sanity = asyncio.Lock()

    async def close(self) -> None:
        """Closing twice is fine."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Ledgers

    @_refusing
    async def ledgers(self, first: int, count: int | None, *, has_metadata: bool, decodes: bool) -> Mapping[str, object]:
        cluster, found, at = Cluster(self._store), dict[str, object](), -1
        async for ledger_id in cluster.ledger_ids():
            at += 1
            if at < first or (count is not None and at >= first + count):
                continue
            try:
                found[str(ledger_id)] = await self._shown(cluster, ledger_id, decodes) if has_metadata else None
            except NotThere:  # deleted meanwhile
                continue
        return found

    async def _shown(self, cluster: Cluster, ledger_id: int, decodes: bool) -> object:
        if decodes:
            return metadata_json(ledger_id, await cluster.ledger(ledger_id))
        return (await cluster.ledger_node(ledger_id)).value.decode(errors="replace")

    @_refusing
    async def ledger(self, ledger_id: int) -> Mapping[str, object]:
        return metadata_json(ledger_id, await Cluster(self._store).ledger(ledger_id))

    @_refusing
    async def entries(self, ledger_id: int, first: int, last: int | None, bytes_max: int) -> Mapping[str, str]:
        """Entries of a ledger; those beyond the end are left out, as Apache does."""
        found, size = dict[str, str](), 0
        async with open_ledgers(self._store, self._tls) as access:
            try:
                async for entry in access.read(ledger_id, first, last):
                    size += len(entry.payload)
                    if size > bytes_max:
                        raise ClusterRefused(f"more than {bytes_max} bytes: ask for fewer, by start_entry_id or page", 400)
                    found[str(entry.entry_id)] = entry_text(entry.payload, "string")
            except NotThere:
                if not found:
                    raise
        return found

    @_refusing
    async def delete_ledger(self, ledger_id: int) -> None:
        cluster = Cluster(self._store)
        await cluster.ledger_node(ledger_id)
        await (await cluster.registry()).delete(ledger_id)

    # Bookies

    @_refusing
    async def bookies(self, *, read_only: bool, has_hosts: bool) -> Mapping[str, str | None]:
        cluster = Cluster(self._store)
        names = await (cluster.read_only() if read_only else cluster.writable())
        return {name: (await cluster.address(name)).host if has_hosts else None for name in names}

    @_refusing
    async def disk_spaces(self) -> Mapping[str, str]:
        """Disk space in the form of Apache's ListBookieInfoService, punctuation and all."""
        spaces, failures = await disk_spaces(self._store, self._tls)
        if not spaces:
            raise NotThere(f"Not found any Bookie info. {failures or ''}".strip())
        shown = {name: f": {{{_room(each.free_bytes, each.total_bytes)}}}," for name, each in spaces.items()}
        free, total = (sum(each.free_bytes for each in spaces.values()), sum(each.total_bytes for each in spaces.values()))
        return {**shown, "ClusterInfo: ": f"{{{_room(free, total)}}}"}

    @_refusing
    async def summary(self) -> Mapping[str, object]:
        return await cluster_summary(self._store)

    @_refusing
    async def sanity(self) -> Mapping[str, bool]:
        """One at a time; not passed, and a line in the log, when it was not done in SANITY_SECONDS or failed."""
        if self._bookie_id in await Cluster(self._store).read_only():
            return {"passed": False, "readOnly": True}
        return {"passed": await self._is_written_and_read(), "readOnly": False}

    async def _is_written_and_read(self) -> bool:
        try:
            async with self._sanity, asyncio.timeout(SANITY_SECONDS), open_ledgers(self._store, self._tls) as access:
                await write_trial(access, SANITY_ENTRIES, ON_ONE_BOOKIE, _log.debug, self._bookie_id)
        except (*FAILURES, TimeoutError) as error:
            _log.warning(line("the bookie's sanity test failed", reason=str(error) or f"not done in {SANITY_SECONDS:g} s"))
            return False
        return True

    # Repair

    @_refusing
    async def is_repaired(self) -> bool:
        return await replication.marks_in(self._store).is_enabled()

    @_refusing
    async def set_repaired(self, is_enabled: bool) -> None:
        marks = replication.marks_in(self._store)
        await (marks.enable() if is_enabled else marks.disable())

    @_refusing
    async def lacking(self, missing: str, excluding: str) -> Sequence[tuple[int, Sequence[str]]]:
        found = replication.lacking(self._store, missing, excluding)
        return [(each.ledger_id, each.what.missing_replicas) async for each in found]

    @_refusing
    async def auditor(self) -> str | None:
        return await elected_auditor(self._store)

    @_refusing
    async def trigger_audit(self) -> None:
        await replication.trigger_audit(self._store)

    @_refusing
    async def recovery_delay_seconds(self) -> int:
        return await replication.recovery_delay_seconds(self._store)

    @_refusing
    async def set_recovery_delay_seconds(self, seconds: int) -> None:
        await replication.marks_in(self._store).set_lost_bookie_recovery_delay(seconds)

    def start_recovery(self, bookie_ids: Sequence[str], *, deletes_cookie: bool) -> None:
        names = [_checked(bookie_id) for bookie_id in bookie_ids]

        async def work(access: LedgerAccess) -> None:
            done = await recover(access.client, names, report=progress_line(_log.info))
            for bookie_id in names if deletes_cookie and not done.failed and not done.open_left else ():
                await delete_cookie(self._store, bookie_id)

        self._start(f"recovery of {', '.join(names)}", work)

    def start_decommission(self, bookie_id: str) -> None:
        name = _checked(bookie_id)

        async def work(access: LedgerAccess) -> None:
            await decommission(access.client, name, progress_line(_log.info))

        self._start(f"decommission of {name}", work)

    def _start(self, what: str, work: Callable[[LedgerAccess], Awaitable[None]]) -> None:
        if len(self._background) >= BACKGROUND_MAX:
            raise ClusterRefused(f"{BACKGROUND_MAX} recoveries run already: wait for one to end", 503)
        task = asyncio.get_running_loop().create_task(self._run(what, work), name=what)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run(self, what: str, work: Callable[[LedgerAccess], Awaitable[None]]) -> None:
        _log.info(line("cluster work begun", work=what))
        try:
            async with open_ledgers(self._store, self._tls) as access:
                await work(access)
        except FAILURES as error:
            _log.error(line("cluster work failed", work=what, reason=error))
        else:
            _log.info(line("cluster work done", work=what))


def _room(free: int, total: int) -> str:
    return f"Free: {free}{readable(free)}, Total: {total}{readable(total)}"


def _checked(bookie_id: str) -> str:
    try:
        return checked_bookie_id(bookie_id)
    except ClusterFailed as error:
        raise ClusterRefused(str(error), 400) from error
