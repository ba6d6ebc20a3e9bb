"""Gathering: the metrics of all processes as one text, told on a socket of the supervisor's to the process that was asked.

Owns no metrics but whether each process is there and how often it was started. One gathering at a time: others wait for theirs.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cli.processes.local_http import fetched, served
from cli.processes.merged_metrics import merged
from cli.processes.place import metrics_of
from cli.processes.supervisor import Supervisor
from ports.logs import line
from ports.metrics.metric_help import head

log = logging.getLogger("interpulse")

UP, STARTS = "supervised_process_up", "supervised_process_starts_total"
PROCESS_SECONDS_MAX = 25.0
"""A process that does not tell its metrics by then is left out, and not up."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Gathering:
    """Metrics of one supervisor's processes, on the socket at `path`."""

    def __init__(self, supervisor: Supervisor, directory: str) -> None:
        self._supervisor, self._directory = supervisor, directory
        self._turn = asyncio.Lock()

    async def serve(self, path: str) -> asyncio.Server:
        return await served(Starlette(routes=[Route("/metrics", self._metrics), Route("/processes", self._processes)]), path)

    async def _processes(self, request: Request) -> Response:
        """The processes, for interpulse doctor and for people."""
        supervisor = self._supervisor
        shown = [
            {
                "number": each.number,
                "phase": each.phase.value,
                "pid": supervisor.children[each.number].pid,
                "starts": each.starts,
            }
            for each in supervisor.supervision.processes.values()
        ]
        return JSONResponse(shown)

    async def _metrics(self, request: Request) -> Response:
        async with self._turn:
            told = await asyncio.gather(*(self._of(number) for number in self._supervisor.serving()))
            texts = {number: text for number, text in told if text is not None}
            pieces = await asyncio.to_thread(lambda: [self._own(texts.keys()).encode(), *merged(texts)])
        return StreamingResponse(_sent(pieces), media_type=METRICS_TYPE)

    async def _of(self, number: int) -> tuple[int, bytes | None]:
        path = metrics_of(self._directory, number)
        try:
            return number, await asyncio.to_thread(fetched, path, "/metrics", PROCESS_SECONDS_MAX)
        except OSError as error:
            log.warning(line("a process does not give its metrics", number=number, reason=error))
            return number, None

    def _own(self, told: Collection[int]) -> str:
        """Whether a process is up: its series are in this answer."""
        processes = self._supervisor.supervision.processes.values()
        up = "".join(f'{UP}{{process="{each.number}"}} {int(each.number in told)}\n' for each in processes)
        starts = "".join(f'{STARTS}{{process="{each.number}"}} {each.starts}\n' for each in processes)
        return head(UP, "gauge") + up + head(STARTS, "counter") + starts


async def _sent(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
