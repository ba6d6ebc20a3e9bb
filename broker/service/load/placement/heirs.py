"""Heirs: next owners of the bundles that this broker releases, so that clients need no lookup.

As Apache's transfer (PIP-307): with CLOSE_PRODUCER and CLOSE_CONSUMER goes the address of the next owner, and a client that
comes there with a topic that is not served yet waits until it is. Both sides use the wish on the board (`LoadBoard.wish`). Owns
the heirs of bundles that are being released. A bundle without an heir is looked up, as ever.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from metadata.store import MetadataError
from ports.logs import line

from ....errors import BrokerError
from ...addresses import Advertised
from ...neighbours.members import Members, parse_broker_data
from ...ownership.bundles import Bundle, Bundles
from .choosing import Chooser

NAMING_SECONDS_MAX = 2.0
"""Time for finding one heir; no more are named after the first that took longer: a release must not wait for metadata."""
log = logging.getLogger(__name__)


class Heirs:
    """Heirs of one broker's bundles."""

    def __init__(self, members: Members, chooser: Chooser) -> None:
        self._members, self._chooser = members, chooser
        self._named: dict[Bundle, Advertised] = {}
        self._is_naming = True

    def of(self, bundle: Bundle) -> Advertised | None:
        return self._named.get(bundle)

    def forget(self, bundle: Bundle) -> None:
        self._named.pop(bundle, None)

    async def wish_for_own(self, bundle: Bundle) -> bool:
        """Whether a wish names this broker. MetadataError."""
        return await self._chooser.wished(bundle) == self._members.own_id

    async def as_wished(self, bundle: Bundle) -> None:
        """Names the wished broker as heir, if there is a wish. Never fails."""
        await self._name(bundle, partial(self._chooser.wished, bundle))

    async def as_chosen(self, cut: Bundles, bundle: Bundle) -> None:
        """Chooses the heir of a bundle that this broker gives up, and stores it as the wish. Never fails."""
        await self._name(bundle, partial(self._chosen, cut, bundle))

    async def _chosen(self, cut: Bundles, bundle: Bundle) -> str | None:
        chosen = await self._chooser.choose(cut, bundle, {*await self._members.ids()} - {self._members.own_id})
        if chosen is not None and await self._chooser.wished(bundle) != chosen:
            await self._chooser.wish(bundle, chosen)
        return chosen

    async def _name(self, bundle: Bundle, find: Callable[[], Awaitable[str | None]]) -> None:
        if not self._is_naming:
            return
        try:
            async with asyncio.timeout(NAMING_SECONDS_MAX):
                heir = await find()
                data = None if heir is None or heir == self._members.own_id else await self._members.data(heir)
            if data is not None:
                self._named[bundle] = parse_broker_data(data, "")
        except (TimeoutError, MetadataError) as error:
            self._is_naming = False
            log.warning(line("bundles are released without a next owner", reason=error or "no answer in time"))
        except BrokerError as error:
            log.debug(line("no broker is named as the next owner of a bundle", bundle=bundle, reason=error.message))
