"""RackData: where bookies are, as an operator wrote it to `/bookies` (`pulsar-admin bookies set-bookie-rack`), followed as
it changes.

The value is JSON, `{"group": {"host:port": {"rack": "/region/rack", "hostname": "..."}}}` (Pulsar's
BookieRackAffinityMapping). What cannot be read is said in the log, and what was known before stays.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from metadata.store import MetadataError, MetadataStore, Notification
from ports.logs import line

BOOKIES = "/bookies"
DEFAULT_RACK = "/default-rack"
DEFAULT_REGION_AND_RACK = "/default-region/default-rack"
RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class MalformedRackData(Exception):
    """The value of `/bookies` is not what it should be."""


def parse_rack_data(value: bytes) -> Mapping[str, str]:
    """The place of each bookie that is named, with one `/` before each name and none at the end."""
    try:
        groups = json.loads(value or b"{}")
        named = {name: info["rack"] for group in groups.values() for name, info in group.items()}
        return {name: _normal(rack) for name, rack in named.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedRackData(
            f"{BOOKIES}: expected {{group: {{bookie: {{rack}}}}}}, not {value[:80]!r} ({error!r})"
        ) from error


def _normal(rack: Any) -> str:
    names = [name for name in rack.split("/") if name]
    if not names:
        raise ValueError("an empty rack")
    return "/" + "/".join(names)


class RackData:
    """`open` first, `close` last. Before it is open everybody is at the default place."""

    def __init__(self, store: MetadataStore, default: str = DEFAULT_RACK) -> None:
        self._store, self._default = store, default
        self._places: Mapping[str, str] = {}
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] = lambda: None

    def place_of(self, bookie: str) -> str:
        return self._places.get(bookie, self._default)

    async def open(self) -> None:
        """MetadataError."""
        self._unwatch = self._store.watch(BOOKIES, self._on_change)
        await self._refresh()
        self._follower = asyncio.create_task(self._follow(), name="follow racks of bookies")

    async def close(self) -> None:
        """Closing twice is fine."""
        self._unwatch()
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
            self._follower = None

    def _on_change(self, change: Notification) -> None:
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._refresh()
            except MetadataError as error:
                _log.warning(line("racks of bookies unknown, trying again", reason=error))
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _refresh(self) -> None:
        found = await self._store.get(BOOKIES)
        try:
            self._places = {} if found is None else parse_rack_data(found.value)
        except MalformedRackData as error:
            _log.warning(line("racks of bookies cannot be read", reason=error))
