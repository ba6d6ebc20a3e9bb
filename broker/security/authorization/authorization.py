"""Authorization: whether a caller has a needed permission, by the grants in metadata. Owns a bounded copy of the grants, kept
current by a watch.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from metadata.store import MetadataStore, Notification
from ports.logs import line

from ..settings import SecuritySettings
from .callers import Caller
from .grants import Grants, admin_roles, grants
from .needs import Need
from .permissions import PrefixMissing, Rules

log = logging.getLogger(__name__)

POLICIES = "/admin/policies"
KNOWN_MAX = 10_000
"""Number of tenants and namespaces whose grants are kept; the least recently used one goes."""
T = TypeVar("T")


class Denied(Exception):
    """The message is for the peer: it names the role and the missing permission."""


class _Known(Generic[T]):
    """Known values by path. A change that comes while a value is being read keeps that value from being kept."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, T] = OrderedDict()
        self._changes = 0

    @property
    def changes(self) -> int:
        return self._changes

    def get(self, path: str) -> T | None:
        if path in self._values:
            self._values.move_to_end(path)
        return self._values.get(path)

    def keep(self, path: str, value: T, changes: int) -> None:
        if changes != self._changes:
            return
        self._values[path] = value
        while len(self._values) > KNOWN_MAX:
            self._values.popitem(last=False)

    def forget(self, path: str) -> None:
        self._changes += 1
        self._values.pop(path, None)


class Authorization:
    """`close` last."""

    def __init__(self, settings: SecuritySettings, store: MetadataStore) -> None:
        self._store = store
        wildcards = settings.authorization_allow_wildcards_matching
        self.rules = Rules(frozenset(settings.super_user_roles), frozenset(settings.proxy_roles), wildcards)
        self._admins: _Known[frozenset[str]] = _Known()
        self._grants: _Known[Grants | None] = _Known()
        self._listeners: dict[Callable[[str], None], None] = {}
        self._unwatch = store.watch(POLICIES, self._changed)

    async def require(self, caller: Caller, need: Need) -> None:
        """Denied, and a line in the log. MetadataError: the grants cannot be read, and the request is denied."""
        try:
            for role in caller.roles(self.rules.proxy_roles):
                if not await self._may(role, need):
                    raise Denied(f"{role} is not authorized: {need}")
        except PrefixMissing as missing:
            self._tell(caller, need)
            raise Denied(str(missing)) from None
        except Denied:
            self._tell(caller, need)
            raise

    async def may(self, caller: Caller, need: Need) -> bool:
        """Whether the caller may; like `require`, without a line in the log."""
        try:
            return all([await self._may(role, need) for role in caller.roles(self.rules.proxy_roles)])
        except PrefixMissing:
            return False

    async def has_tenant(self, tenant: str) -> bool:
        """Whether there is one of that name."""
        return await self._store.exists(f"{POLICIES}/{tenant}")

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Adds a listener for tenants, or tenant/namespaces, whose grants may have changed. Returns the call that removes
        it.
        """
        self._listeners[listener] = None
        return lambda: self._listeners.pop(listener, None)

    def close(self) -> None:
        self._unwatch()

    async def _may(self, role: str, need: Need) -> bool:
        if role in self.rules.super_user_roles:
            return True
        admins = await self._admins_of(need.tenant) if need.tenant else frozenset[str]()
        granted = await self._grants_of(need.namespace) if need.namespace else None
        return self.rules.may(role, need, admins, granted)

    async def _admins_of(self, tenant: str) -> frozenset[str]:
        path = f"{POLICIES}/{tenant}"
        known = self._admins.get(path)
        if known is None:
            changes = self._admins.changes
            found = await self._store.get(path)
            known = frozenset() if found is None else admin_roles(found.value)
            if found is not None:
                self._admins.keep(path, known, changes)
        return known

    async def _grants_of(self, namespace: str) -> Grants | None:
        path = f"{POLICIES}/{namespace}"
        known = self._grants.get(path)
        if known is None:
            changes = self._grants.changes
            found = await self._store.get(path)
            known = None if found is None else grants(found.value)
            if found is not None:
                self._grants.keep(path, known, changes)
        return known

    def _changed(self, notification: Notification) -> None:
        self._admins.forget(notification.path)
        self._grants.forget(notification.path)
        for listener in tuple(self._listeners):
            listener(notification.path.removeprefix(POLICIES + "/"))

    def _tell(self, caller: Caller, need: Need) -> None:
        log.warning(line("not allowed", role=str(caller)[:300], needs=str(need)[:500]))
