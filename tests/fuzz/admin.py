"""Requests of the fuzz to a broker over REST: namespaces with their policies, topics unloaded, looked into and deleted."""

import asyncio
import http.client
import json
import urllib.parse
from typing import Any

from .knowledge import NAMESPACE

SECONDS_MAX = 60.0
POLICIES = {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}, "bundles": {"numBundles": 4}}
"""Nothing is trimmed: what was told to be stored has to be there."""


class Admin:
    """Admin REST of one server, one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._where = host, port

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        return await asyncio.to_thread(self._call, method, path, body)

    def _call(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._where, timeout=SECONDS_MAX)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, f"/admin/v2/{path}", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError) as failure:
            return 0, repr(failure).encode()
        finally:
            connection.close()

    async def begin(self) -> None:
        """The namespaces, one of them with deduplication."""
        for namespace, more in ((NAMESPACE, {}), ("public/sober", {"deduplicationEnabled": True})):
            status, told = await self.call("PUT", f"namespaces/{namespace}", {**POLICIES, **more})
            assert status in (204, 409), (status, told)

    async def topics(self, namespace: str = NAMESPACE) -> list[str]:
        """Stored topics, with their partitions."""
        return list(await self._json(f"persistent/{namespace}"))

    async def partitioned(self, namespace: str = NAMESPACE) -> list[str]:
        return list(await self._json(f"persistent/{namespace}/partitioned")) + list(
            await self._json(f"non-persistent/{namespace}/partitioned")
        )

    async def _json(self, path: str) -> Any:
        status, told = await self.call("GET", path)
        assert status == 200, (path, status, told)
        return json.loads(told)


def path_of(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    tenant, namespace, local = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{urllib.parse.quote(local, safe='')}"
