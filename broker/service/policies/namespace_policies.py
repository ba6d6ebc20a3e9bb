"""The policies of namespaces: Apache's JSON in metadata, and its part for topics, kept current by a watch. Owns the cache for
namespaces that have topics here. Changes are made by compare-and-set, and are in force on every loaded topic when `change`
returns; changes of other brokers when the watch has reported them.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from metadata.store import BadVersion, Change, MetadataError, MetadataStore, Notification
from ports.logs import line

from ...errors import BrokerError, ServerError
from ...policies.documents import from_namespace_document
from ...policies.policies import TopicPolicies
from ..catalogue.namespaces import policies_path, to_json
from ..errors import NamespaceNotFound
from ..topic_name import NamespaceName

log = logging.getLogger(__name__)

_ROOT = "/admin/policies"
_ATTEMPTS_MAX = 10


Apply = Callable[[NamespaceName], Awaitable[None]]
"""Puts changed policies in force on the topics of a namespace."""


class NamespacePolicies:
    """Policies of namespaces in one metadata store, as the brokers of one cluster see them."""

    def __init__(self, store: MetadataStore, cluster: str, gone: Callable[[NamespaceName], None]) -> None:
        """`gone` is notified of each namespace that was deleted."""
        self._store = store
        self._cluster = cluster
        self._gone = gone
        self._appliers: list[Apply] = []
        self._cached: dict[str, TopicPolicies] = {}
        self._turn = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._unwatch = store.watch(_ROOT, self._changed)

    def apply_with(self, apply: Apply) -> None:
        """Adds a call that puts policies in force, made after each change."""
        self._appliers.append(apply)

    async def read(self, namespace: NamespaceName) -> TopicPolicies:
        """Returns the policies that hold now, read from metadata unless they are cached. BrokerError(METADATA)."""
        try:
            await self.load(namespace)
        except MetadataError as error:
            raise BrokerError(ServerError.METADATA, str(error)) from error
        return self.of(namespace)

    async def load(self, namespace: NamespaceName) -> None:
        """Reads the policies that `of` returns. MetadataError when they cannot be read."""
        if str(namespace) not in self._cached:
            async with self._turn:
                found = await self._read(namespace)
                if found is not None:
                    self._cached[str(namespace)] = found

    def of(self, namespace: NamespaceName) -> TopicPolicies:
        """Returns the policies that hold now; after `load`."""
        return self._cached.get(str(namespace), TopicPolicies())

    async def document(self, namespace: NamespaceName) -> dict[str, Any]:
        """Everything that is stored, as Apache names it. NamespaceNotFound."""
        return (await self._document(namespace))[0]

    async def change(self, namespace: NamespaceName, edit: Callable[[dict[str, Any]], None]) -> None:
        """Store what `edit` makes of the document (it may raise), and put it in force. NamespaceNotFound."""
        for _ in range(_ATTEMPTS_MAX):
            document, version = await self._document(namespace)
            edit(document)
            from_namespace_document(document, self._cluster)
            try:
                await self._store.put(policies_path(namespace), to_json(document), version)
            except BadVersion:
                continue  # another writer changed it meanwhile: apply the change to that version
            await self._refresh(namespace)
            return
        raise BrokerError(ServerError.METADATA, f"The policies of {namespace} are being changed by others all the time")

    def close(self) -> None:
        self._unwatch()
        for task in self._tasks:
            task.cancel()

    def _changed(self, notification: Notification) -> None:
        name = notification.path.removeprefix(_ROOT + "/")
        if name in self._cached or (notification.change is Change.DELETED and name.count("/") == 1):
            task = asyncio.get_running_loop().create_task(self._follow(NamespaceName.parse(name)))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _follow(self, namespace: NamespaceName) -> None:
        try:
            await self._refresh(namespace)
        except MetadataError as error:
            log.error(line("policies stay as they were", namespace=namespace, error=error))

    async def _refresh(self, namespace: NamespaceName) -> None:
        """One after the other, so that the last to read is the last to be in force."""
        async with self._turn:
            found = await self._read(namespace)
            if found is None:
                self._cached.pop(str(namespace), None)
                self._gone(namespace)
                await self._apply(namespace)
            elif str(namespace) in self._cached:
                self._cached[str(namespace)] = found
                await self._apply(namespace)

    async def _apply(self, namespace: NamespaceName) -> None:
        for apply in self._appliers:
            await apply(namespace)

    async def _read(self, namespace: NamespaceName) -> TopicPolicies | None:
        """None: there is no such namespace; a load of its topics is refused elsewhere. Absent namespaces are not cached."""
        try:
            document, _ = await self._document(namespace)
        except NamespaceNotFound:
            return None
        try:
            return from_namespace_document(document, self._cluster)
        except BrokerError as error:
            raise MetadataError(f"unreadable value at {policies_path(namespace)}: {error.message}") from error

    async def _document(self, namespace: NamespaceName) -> tuple[dict[str, Any], int]:
        found = await self._store.get(policies_path(namespace))
        if found is None:
            raise NamespaceNotFound(str(namespace))
        try:
            document = json.loads(found.value)
        except ValueError as error:
            raise MetadataError(f"unreadable value at {policies_path(namespace)}: {error}") from error
        if not isinstance(document, dict):
            raise MetadataError(f"unreadable value at {policies_path(namespace)}: not an object")
        return document, found.stat.version
