"""The paths of a bookie's HTTP that are about itself, and their answers in Apache's form (server.http.service).

Owns nothing. Paths about its files are in `disk_routes`, those about ledgers and the cluster in `cluster_routes`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bookie.disk_space.health import FORCED
from bookie.server.request_stats import RequestStats
from bookie.striped_bookie import AnyBookie
from bookie.upkeep.garbage import GarbageCollector
from bookie.web.metrics import CONTENT_TYPE, counters_text, metrics_text
from bookie.web.requests import BadRequest, body_of, flag
from ports.settings import shown_value

KINDS = {"Major": "major", "Minor": "minor"}
MASK = "*****"
_SECRETS = ("password", "secret", "token")


class BookieRoutes:
    """Routes of one bookie. `server_config` is what /api/v1/config/server_config shows."""

    def __init__(
        self,
        bookie: AnyBookie,
        collector: GarbageCollector,
        bookie_id: str,
        server_config: dict[str, str],
        connections: Callable[[], int],
        requests: RequestStats | None = None,
        others: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`requests`: of the bookie's port; None where it has none. `others`: counters of other parts of the process."""
        self._bookie, self._collector, self._connections = bookie, collector, connections
        self._requests, self._others = requests, others
        self._bookie_id, self._server_config = bookie_id, server_config

    def routes(self) -> list[Route]:
        api = "/api/v1/bookie"
        return [
            Route("/heartbeat", self._heartbeat),
            *self.of_metrics(),
            Route("/api/v1/config/server_config", self._config),
            Route(f"{api}/is_ready", self._is_ready),
            Route(f"{api}/state", self._state),
            Route(f"{api}/state/readonly", self._read_only, methods=["GET", "PUT"]),
            Route(f"{api}/info", self._info),
            Route(f"{api}/gc", self._gc, methods=["GET", "PUT"]),
            Route(f"{api}/gc_details", self._gc_details),
            Route(f"{api}/gc/suspend_compaction", self._suspend, methods=["GET", "PUT"]),
            Route(f"{api}/gc/resume_compaction", self._resume, methods=["PUT"]),
        ]

    def of_metrics(self) -> list[Route]:
        return [Route("/metrics", self._metrics)]

    async def _heartbeat(self, request: Request) -> Response:
        return PlainTextResponse("OK\n")

    async def _metrics(self, request: Request) -> Response:
        text = metrics_text(self._bookie, await self._bookie.usages(), self._connections(), self._requests)
        return Response(text + counters_text(self._others()), media_type=CONTENT_TYPE)

    async def _config(self, request: Request) -> Response:
        shown = {
            key: MASK if is_secret(key) and value else shown_value(key, value) for key, value in self._server_config.items()
        }
        return JSONResponse(shown)

    async def _is_ready(self, request: Request) -> Response:
        return Response(b"")  # it listens from when the bookie has started until it stops

    async def _state(self, request: Request) -> Response:
        is_read_only = bool(self._bookie.read_only_reason)
        takes_recovery = all(stripe.health.takes_recovery for stripe in self._bookie.stripes)
        return JSONResponse(
            {
                "running": True,
                "readOnly": is_read_only,
                "shuttingDown": False,
                "availableForHighPriorityWrites": takes_recovery,
            }
        )

    async def _read_only(self, request: Request) -> Response:
        if request.method == "PUT":
            wanted = flag(await body_of(request), "readOnly")
            for stripe in self._bookie.stripes:
                if wanted:
                    stripe.health.turn_read_only(FORCED, "by an operator")
                else:
                    stripe.health.turn_writable(FORCED)
        return JSONResponse({"readOnly": bool(self._bookie.read_only_reason)})

    async def _info(self, request: Request) -> Response:
        usage = await self._bookie.usage()
        return JSONResponse({"freeSpace": usage.free_bytes, "totalSpace": usage.total_bytes})

    async def _gc(self, request: Request) -> Response:
        if request.method == "PUT":
            body = await body_of(request, is_needed=False)
            self._collector.trigger(None if not body else _kind(body, "force"))
            return JSONResponse(f"Triggered GC on BookieServer: {self._bookie_id}")
        return JSONResponse({"is_in_force_gc": str(self._collector.is_forced).lower()})

    async def _gc_details(self, request: Request) -> Response:
        return JSONResponse([stripe.compactor.status() for stripe in self._bookie.stripes])

    async def _suspend(self, request: Request) -> Response:
        if request.method == "PUT":
            return self._switch(await body_of(request), "suspend")
        suspended = {name for stripe in self._bookie.stripes for name in stripe.compactor.suspended}
        return JSONResponse({f"is{kind}GcSuspended": str(name in suspended).lower() for kind, name in KINDS.items()})

    async def _resume(self, request: Request) -> Response:
        return self._switch(await body_of(request), "resume")

    def _switch(self, body: dict[str, Any], verb: str) -> Response:
        names = [name for kind, name in KINDS.items() if body.get(f"{verb}{kind}") is True]
        if not names:
            raise BadRequest(f"No {verb}Major or {verb}Minor params found")
        for stripe in self._bookie.stripes:
            for name in names:
                if verb == "suspend":
                    stripe.compactor.suspended.add(name)
                else:
                    stripe.compactor.suspended.discard(name)
        return JSONResponse(", ".join(f"{verb.title()} {name}GC on BookieServer: {self._bookie_id}" for name in names))


def is_secret(key: str) -> bool:
    """Whether the value of this setting is a secret; the path of a file that holds the secret is none."""
    folded = key.lower()
    return any(word in folded for word in _SECRETS) and not folded.endswith(("path", "file"))


def _kind(body: dict[str, Any], verb: str) -> str | None:
    """Major, which does what minor does and more, before minor."""
    return next((name for kind, name in KINDS.items() if body.get(f"{verb}{kind}") is True), None)
