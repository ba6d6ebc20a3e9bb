"""Revocation: producers and consumers of one connection are closed as soon as metadata no longer allows them.

Owns only whether a look is under way. Apache looks again whenever policies of the namespace change (Producer and
Consumer.checkPermissionsAsync); here it is also done when the admins of the tenant change. A client whose permission cannot be
read is closed too, and checked again at its return.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from metadata.store import MetadataError
from ports.logs import line

from ...errors import BrokerError
from ...security.authorization.authorization import Authorization
from ...security.authorization.callers import Caller
from ...security.authorization.needs import Need
from ..link import Link

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attached:
    """A producer or consumer, or one that is about to be."""

    need: Need
    end: Callable[[str], None]
    """Called with the reason; does nothing for one that is gone."""


class Revocation:
    """`close` last."""

    def __init__(
        self,
        authorization: Authorization,
        link: Link,
        caller: Callable[[], Caller | None],
        all_of: Callable[[], Iterable[Attached]],
    ) -> None:
        self._authorization, self._link, self._caller, self._all = authorization, link, caller, all_of
        self._is_looking = self._has_changed = False
        self._unlisten = authorization.listen(self._changed)

    def close(self) -> None:
        self._unlisten()

    def _changed(self, place: str) -> None:
        """`place`: a tenant, or tenant/namespace."""
        if any(place in (each.need.namespace, each.need.tenant) for each in self._all()):
            self._has_changed = True
            if not self._is_looking:
                self._is_looking = True
                self._link.run(None, self._look(), self._failed)

    async def _look(self) -> None:
        """One look at a time: changes meanwhile cause another look."""
        try:
            while self._has_changed and self._link.is_open:
                self._has_changed = False
                for attached in tuple(self._all()):
                    if not await self._may(attached.need):
                        attached.end(f"not allowed any more: {attached.need}")
        finally:
            self._is_looking = False

    async def _may(self, need: Need) -> bool:
        caller = self._caller()
        try:
            return caller is not None and await self._authorization.may(caller, need)
        except MetadataError as error:
            log.warning(line("permission could not be checked", peer=self._link.address, needs=str(need)[:500], error=error))
            return False

    def _failed(self, failure: BrokerError) -> None:
        self._link.end(f"permissions could not be looked at again: {failure.message}")
