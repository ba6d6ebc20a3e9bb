"""ForeignOwners: brokers of the cluster that own bundles in another way than by nodes under /namespace.

Apache's ExtensibleLoadManagerImpl owns them by messages in a topic and takes a bundle independently of its node: beside it
every topic would go to and fro. Apache's brokers of two managers send every lookup to those of the kind that started last
(RedirectManager); this one sends them to such a broker as long as there is one, and none of those sends any here, because it
publishes no start time. Owns the data read of the members, until one of them changes.
"""

import json
from collections.abc import Callable
from typing import Any

from metadata.store import MetadataError, MetadataStore, Notification

from ..addresses import BROKERS
from ..neighbours.members import Members

EXTENSIBLE = ".ExtensibleLoadManagerImpl"
"""End of the class name of the manager that owns bundles without nodes."""


def is_foreign(data: bytes) -> bool:
    """Whether a member's node (BrokerLookupData or LocalBrokerData) is of a broker that owns bundles without nodes.
    MetadataError."""
    try:
        fields: Any = json.loads(data)
        return str(fields.get("loadManagerClassName")).endswith(EXTENSIBLE)
    except (ValueError, AttributeError) as error:
        raise MetadataError(f"unreadable data of a broker: {error}") from error


class ForeignOwners:
    """Foreign owners of one cluster. `on_members` is called when a member came, went or changed. `close` last."""

    def __init__(self, store: MetadataStore, members: Members, on_members: Callable[[], None]) -> None:
        self._members, self._on_members = members, on_members
        self._known: list[bytes] | None = None
        self._changes = self._turn = 0
        self.close = store.watch(BROKERS, self._changed)

    async def one(self) -> bytes | None:
        """The node of one of them, each in its turn; None when there are none. MetadataError."""
        changes, found = self._changes, self._known
        if found is None:
            found = [
                data for member in await self._members.ids() if (data := await self._members.data(member)) and is_foreign(data)
            ]
            if changes == self._changes:
                self._known = found
        self._turn += 1
        return found[self._turn % len(found)] if found else None

    def _changed(self, _: Notification) -> None:
        self._known = None
        self._changes += 1
        self._on_members()
