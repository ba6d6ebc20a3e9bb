"""MeteredStore: a metadata store that counts and times its calls (Apache: MetadataStoreStats).

Passes every call on unchanged. The operations of one commit count each, with the time of all.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ports.metrics.histogram import Histogram

from .store import ANY_VERSION, MetadataStore, Notification, Operation, Put, Stat, Versioned

LATENCY_BOUNDS_MS = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
KINDS = ("get", "put", "del")
STATUSES = ("success", "fail")


class MetadataMeters:
    """Latencies in milliseconds by kind and status; bytes of values that were put."""

    def __init__(self) -> None:
        self.latencies = {(kind, status): Histogram(LATENCY_BOUNDS_MS) for kind in KINDS for status in STATUSES}
        self.put_bytes = 0


class MeteredStore:
    """A `MetadataStore` on another one."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.meters = MetadataMeters()
        self._loop = asyncio.get_running_loop()

    async def get(self, path: str) -> Versioned | None:
        async with self._measured({"get": 1}):
            return await self._store.get(path)

    async def children(self, path: str) -> list[str]:
        return await self._store.children(path)

    async def exists(self, path: str) -> bool:
        return await self._store.exists(path)

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        async with self._measured({"put": 1}, len(value)):
            return await self._store.put(path, value, expected_version, ephemeral=ephemeral, sequential=sequential)

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        async with self._measured({"del": 1}):
            await self._store.delete(path, expected_version)

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        values = [each.value for each in operations if isinstance(each, Put)]
        async with self._measured({"put": len(values), "del": len(operations) - len(values)}, sum(map(len, values))):
            return await self._store.commit(operations)

    def watch(self, prefix: str, watcher: Callable[[Notification], None]) -> Callable[[], None]:
        return self._store.watch(prefix, watcher)

    async def close(self) -> None:
        await self._store.close()

    @asynccontextmanager
    async def _measured(self, counts: dict[str, int], put_bytes: int = 0) -> AsyncIterator[None]:
        """Measure a call; a refusal counts as failed, too: another version, a missing node."""
        began, status = self._loop.time(), "fail"
        try:
            yield
            status = "success"
            self.meters.put_bytes += put_bytes
        finally:
            milliseconds = 1000 * (self._loop.time() - began)
            for kind, count in counts.items():
                if count:
                    self.meters.latencies[kind, status].record(milliseconds, count)
