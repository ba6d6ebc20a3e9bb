"""The HTTP of an autorecovery process: whether it lives, and its counters. Imported only where it is asked for."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bookie.web.metrics import CONTENT_TYPE, counters_text
from bookkeeper.repair.counters import RepairCounters


class RepairRoutes:
    """Routes of one autorecovery. Satisfies `bookie.web.app.RouteGroup`."""

    def __init__(self, counters: RepairCounters) -> None:
        self._counters = counters

    def routes(self) -> list[Route]:
        return [Route("/heartbeat", self._heartbeat), Route("/metrics", self._metrics)]

    async def _heartbeat(self, request: Request) -> Response:
        return PlainTextResponse("OK\n")

    async def _metrics(self, request: Request) -> Response:
        return Response(counters_text(self._counters.values()), media_type=CONTENT_TYPE)
