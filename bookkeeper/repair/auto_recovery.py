"""AutoRecovery: an auditor that stands for election and a replication worker, as one part of a process.

As Apache's AutoRecoveryMain, in a process of its own or in a bookie's. Owns the tasks, and the order of start and stop.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from bookkeeper.repair.auditor.election import AuditorElection
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.worker import ReplicationWorker
from metadata.sessions import Sessions
from ports.logs import line

_log = logging.getLogger(__name__)


class AutoRecovery:
    """`start` once, `stop` once. The caller that opened the client's store closes it."""

    def __init__(self, client: RepairClient, sessions: Sessions) -> None:
        self.counters = RepairCounters()
        self._client = client
        self._election = AuditorElection(client, sessions, self.counters)
        self._worker = ReplicationWorker(client, sessions, self.counters)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_auditor(self) -> bool:
        """Whether it is the elected one now."""
        return self._election.is_auditor

    async def start(self) -> None:
        """LedgerError when the cluster's metadata is not what it should be, or cannot be read."""
        await self._client.open()
        self._tasks = [self._run("auditor election", self._election.run()), self._run("replication worker", self._worker.run())]

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_tell_failure)
        return task

    async def until_it_failed(self) -> None:
        """Raises what ended one of its parts: nothing should."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Stop; locks and the vote are given back, so that others go on at once. Stopping twice is fine."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._worker.release_all()
        await self._election.withdraw()
        await self._client.close()


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical(line("a part of autorecovery died: ledgers are not repaired here", part=task.get_name()), exc_info=error)
