"""The paths of a bookie's HTTP about ledgers, the cluster and its repair, in Apache's form. Does nothing by itself."""

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bookie.web.cluster_port import ClusterPort, ClusterRefused
from bookie.web.requests import BadRequest, body_of, is_true, number_parameter

LEDGERS_PER_PAGE = 100
ENTRIES_PER_PAGE = 1000
ENTRIES_BYTES_MAX = 16 << 20
"""Total size of the entries in one answer."""
DELAY_SECONDS_MAX = (1 << 31) - 1


class ClusterRoutes:
    """Asks `cluster`."""

    def __init__(self, cluster: ClusterPort) -> None:
        self._cluster = cluster

    def routes(self) -> list[Route]:
        ledger, bookie, repair = "/api/v1/ledger", "/api/v1/bookie", "/api/v1/autorecovery"
        return [
            Route(f"{ledger}/list", self._list_ledgers),
            Route(f"{ledger}/metadata", self._ledger_metadata),
            Route(f"{ledger}/read", self._read_ledger),
            Route(f"{ledger}/delete", self._delete_ledger, methods=["DELETE"]),
            Route(f"{bookie}/list_bookies", self._list_bookies),
            Route(f"{bookie}/list_bookie_info", self._list_bookie_info),
            Route(f"{bookie}/cluster_info", self._cluster_info),
            Route(f"{bookie}/sanity", self._sanity),
            Route(f"{repair}/status", self._status, methods=["GET", "PUT"]),
            Route(f"{repair}/list_under_replicated_ledger", self._list_lacking),
            Route(f"{repair}/who_is_auditor", self._who_is_auditor),
            Route(f"{repair}/trigger_audit", self._trigger_audit, methods=["PUT"]),
            Route(f"{repair}/lost_bookie_recovery_delay", self._recovery_delay, methods=["GET", "PUT"]),
            Route(f"{repair}/bookie", self._recover, methods=["PUT"]),
            Route(f"{repair}/decommission", self._decommission, methods=["PUT"]),
        ]

    # Ledgers

    async def _list_ledgers(self, request: Request) -> Response:
        has_metadata = is_true(request, "print_metadata")
        page = number_parameter(request, "page", -1, -1) if has_metadata else -1
        first, count = ((page - 1) * LEDGERS_PER_PAGE, LEDGERS_PER_PAGE) if page > 0 else (0, None)
        decodes = is_true(request, "decode_meta")
        return JSONResponse(await self._cluster.ledgers(first, count, has_metadata=has_metadata, decodes=decodes))

    async def _ledger_metadata(self, request: Request) -> Response:
        ledger_id = number_parameter(request, "ledger_id")
        return JSONResponse({str(ledger_id): await self._cluster.ledger(ledger_id)})

    async def _read_ledger(self, request: Request) -> Response:
        ledger_id, page = number_parameter(request, "ledger_id"), number_parameter(request, "page", -1, -1)
        first, last = number_parameter(request, "start_entry_id", 0), number_parameter(request, "end_entry_id", -1, -1)
        shown: dict[str, str] = {}
        if page > 0:
            page_first = (page - 1) * ENTRIES_PER_PAGE
            page_last = page_first + ENTRIES_PER_PAGE - 1
            first, last = max(first, page_first), page_last if last < 0 else min(last, page_last)
            shown["Entries for page: "] = str(page)  # as Apache spells it
        if last >= 0 and first > last:
            raise BadRequest(f"start_entry_id and end_entry_id leave nothing of page={page}: {first} is after {last}")
        shown |= await self._cluster.entries(ledger_id, first, None if last < 0 else last, ENTRIES_BYTES_MAX)
        return JSONResponse(shown)

    async def _delete_ledger(self, request: Request) -> Response:
        ledger_id = number_parameter(request, "ledger_id")
        await self._cluster.delete_ledger(ledger_id)
        return JSONResponse(f"Deleted ledger: {ledger_id}")

    # Bookies

    async def _list_bookies(self, request: Request) -> Response:
        read_only = request.query_params.get("type") == "ro"
        return JSONResponse(await self._cluster.bookies(read_only=read_only, has_hosts=is_true(request, "print_hostnames")))

    async def _list_bookie_info(self, request: Request) -> Response:
        return JSONResponse(await self._cluster.disk_spaces())

    async def _cluster_info(self, request: Request) -> Response:
        return JSONResponse(await self._cluster.summary())

    async def _sanity(self, request: Request) -> Response:
        return JSONResponse(await self._cluster.sanity())

    # Repair

    async def _status(self, request: Request) -> Response:
        if request.method == "PUT":
            enabled = request.query_params.get("enabled")
            if enabled is None:
                raise BadRequest("Param 'enabled' not found: expected ?enabled=true or ?enabled=false")
            await self._cluster.set_repaired(enabled.lower() == "true")
        return JSONResponse({"enabled": await self._cluster.is_repaired()})

    async def _list_lacking(self, request: Request) -> Response:
        asked = request.query_params
        found = await self._cluster.lacking(asked.get("missingreplica", ""), asked.get("excludingmissingreplica", ""))
        if not found:
            return PlainTextResponse("No under replicated ledgers found", status_code=404)
        if "printmissingreplica" in asked:
            return JSONResponse({str(ledger_id): list(replicas) for ledger_id, replicas in found})
        return JSONResponse([ledger_id for ledger_id, _ in found])

    async def _who_is_auditor(self, request: Request) -> Response:
        auditor = await self._cluster.auditor()
        if auditor is None:
            return PlainTextResponse("No auditor elected", status_code=404)
        return PlainTextResponse(f"Auditor: {auditor}")

    async def _trigger_audit(self, request: Request) -> Response:
        await self._cluster.trigger_audit()
        return PlainTextResponse("Success trigger audit.")

    async def _recovery_delay(self, request: Request) -> Response:
        if request.method == "GET":
            return PlainTextResponse(f"lostBookieRecoveryDelay value: {await self._cluster.recovery_delay_seconds()}")
        seconds = (await body_of(request)).get("delay_seconds")
        if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds <= DELAY_SECONDS_MAX:
            raise BadRequest('expected {"delay_seconds": <seconds>}')
        await self._cluster.set_recovery_delay_seconds(seconds)
        return PlainTextResponse(f"Success set lostBookieRecoveryDelay to {seconds}")

    async def _recover(self, request: Request) -> Response:
        body = await body_of(request)
        bookies = body.get("bookie_src")
        if not isinstance(bookies, list) or not bookies or not all(isinstance(each, str) for each in bookies):
            raise BadRequest('expected {"bookie_src": ["<bookie id>"], "delete_cookie": <true or false>}')
        self._cluster.start_recovery(bookies, deletes_cookie=body.get("delete_cookie") is True)
        return PlainTextResponse("Success send recovery request command.")

    async def _decommission(self, request: Request) -> Response:
        bookie = (await body_of(request)).get("bookie_src")
        if not isinstance(bookie, str):
            raise BadRequest('expected {"bookie_src": "<bookie id>"}')
        self._cluster.start_decommission(bookie)
        return PlainTextResponse(f"Success send decommission Bookie command {bookie}")


async def on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClusterRefused)
    return PlainTextResponse(str(error), status_code=error.status)
