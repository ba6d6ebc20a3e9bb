"""AbsentOwners: a lookup waits for a bundle whose owner is gone and still has its node, until that goes with its session.

Without it the client is sent to the dead owner again, each time after a pause twice as long (C++: 12, 25, 51 s), and comes back
long after the session is over. Only an owner whose machine refuses the connection counts as gone: one that does not answer may
answer the client. Owns the finding on each address, for a second.
"""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from metadata.store import MetadataStore
from metadata.watches import until

from ..addresses import Advertised

Refuses = Callable[[Advertised], Awaitable[bool]]
WAIT_SECONDS_MAX = 20.0
"""Clients wait 30 s for the answer of a lookup; after this one they come again, without a pause."""
KNOWN_SECONDS = 1.0
PROBE_SECONDS_MAX = 0.2


async def nobody_refuses(_: Advertised) -> bool:
    """Always False, for places where owners are not asked."""
    return False


async def refuses_connections(address: Advertised) -> bool:
    """Whether nothing listens at the broker's address, as its machine says."""
    where = urlsplit(address.broker_url or address.broker_url_tls)
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return False


class AbsentOwners:
    """Absent owners in one metadata store."""

    def __init__(self, store: MetadataStore, refuses: Refuses) -> None:
        self._store, self._refuses = store, refuses
        self._found: dict[Advertised, tuple[float, bool]] = {}
        self._loop = asyncio.get_running_loop()

    async def is_outlived(self, path: str, owner: Advertised) -> bool:
        """True when the owner is gone and its node has gone, too, after a wait if need be. MetadataError."""
        return await self._is_gone(owner) and await self._until_free(path)

    async def _is_gone(self, owner: Advertised) -> bool:
        now = self._loop.time()
        self._found = {address: (at, gone) for address, (at, gone) in self._found.items() if now - at < KNOWN_SECONDS}
        if owner not in self._found:
            self._found[owner] = (now, await self._refuses(owner))
        return self._found[owner][1]

    async def _until_free(self, path: str) -> bool:
        async def is_free() -> bool:
            return not await self._store.exists(path)

        return await until(self._store, path, is_free, WAIT_SECONDS_MAX)
