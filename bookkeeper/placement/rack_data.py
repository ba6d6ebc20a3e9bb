"""RackData: where bookies are, as an operator wrote it to `/bookies` (`pulsar-admin bookies set-bookie-rack`), followed as
it changes.

The value is JSON, `{"group": {"host:port": {"rack": "/region/rack", "hostname": "..."}}}` (Pulsar's
BookieRackAffinityMapping). A value that cannot be read is logged, and the places known before stay.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from metadata.followed_tree import FollowedTree
from metadata.store import MetadataStore
from ports.logs import line

BOOKIES = "/bookies"
DEFAULT_RACK = "/default-rack"
DEFAULT_REGION_AND_RACK = "/default-region/default-rack"
DEFAULT_ZONE_AND_UPGRADE_DOMAIN = "/default-zone/default-upgradedomain"

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


def parse_groups(value: bytes) -> Mapping[str, frozenset[str]]:
    """The bookies of each group. For a value that `parse_rack_data` takes."""
    return {group: frozenset(members) for group, members in json.loads(value or b"{}").items()}


def _normal(rack: Any) -> str:
    names = [name for name in rack.split("/") if name]
    if not names:
        raise ValueError("an empty rack")
    return "/" + "/".join(names)


class RackData:
    """`open` first, `close` last. Before it is open every bookie is at the default place."""

    def __init__(self, store: MetadataStore, default: str = DEFAULT_RACK) -> None:
        self._store, self._default = store, default
        self._places: Mapping[str, str] = {}
        self.groups: Mapping[str, frozenset[str]] = {}
        """Bookies of each group, by name of the group; see `bookkeeper.placement.isolation`."""
        self._followed = FollowedTree(store, BOOKIES, self._refresh, "racks of bookies")

    def place_of(self, bookie: str) -> str:
        return self._places.get(bookie, self._default)

    async def open(self) -> None:
        """MetadataError."""
        await self._followed.open()

    async def close(self) -> None:
        """Closing twice is fine."""
        await self._followed.close()

    async def _refresh(self) -> None:
        found = await self._store.get(BOOKIES)
        try:
            self._places = {} if found is None else parse_rack_data(found.value)
            self.groups = {} if found is None else parse_groups(found.value)
        except MalformedRackData as error:
            _log.warning(line("racks of bookies cannot be read", reason=error))
