"""The policies of namespaces: Apache's JSON in metadata, and what of it holds for topics, kept current by a watch.

Owns what is cached of the namespaces that have topics here. Changes are made by compare-and-set, and are in force on every
loaded topic when `change` returns; those of others when the watch has told of them.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from metadata.store import BadVersion, MetadataError, MetadataStore, Notification
from ports.logs import line

from ..errors import BrokerError, ServerError
from ..topic.policies import BacklogQuota, QuotaPolicy, QuotaType, RetentionPolicy, TopicPolicies
from .errors import NamespaceNotFound
from .namespaces import policies_path, to_json
from .topic_name import NamespaceName

log = logging.getLogger(__name__)

_ROOT = "/admin/policies"
_ATTEMPTS_MAX = 10


class NamespacePolicies:
    """In one metadata store. `apply` puts policies in force on the topics of a namespace."""

    def __init__(self, store: MetadataStore, apply: Callable[[NamespaceName, TopicPolicies], Awaitable[None]]) -> None:
        self._store = store
        self._apply = apply
        self._cached: dict[str, TopicPolicies] = {}
        self._turn = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._unwatch = store.watch(_ROOT, self._changed)

    async def load(self, namespace: NamespaceName) -> None:
        """See to it that `of` knows the namespace. MetadataError when its policies cannot be read."""
        if str(namespace) not in self._cached:
            async with self._turn:
                self._cached[str(namespace)] = await self._read(namespace)

    def of(self, namespace: NamespaceName) -> TopicPolicies:
        """As they are now; after `load`."""
        return self._cached.get(str(namespace), TopicPolicies())

    async def document(self, namespace: NamespaceName) -> dict[str, Any]:
        """Everything that is stored, as Apache names it. NamespaceNotFound."""
        return (await self._document(namespace))[0]

    async def change(self, namespace: NamespaceName, edit: Callable[[dict[str, Any]], None]) -> None:
        """Store what `edit` makes of the document (it may raise), and put it in force. NamespaceNotFound."""
        for _ in range(_ATTEMPTS_MAX):
            document, version = await self._document(namespace)
            edit(document)
            parse_policies(document)
            try:
                await self._store.put(policies_path(namespace), to_json(document), version)
            except BadVersion:
                continue  # somebody else changed it meanwhile: on top of that, then
            await self._refresh(namespace)
            return
        raise BrokerError(ServerError.METADATA, f"The policies of {namespace} are being changed by others all the time")

    def close(self) -> None:
        self._unwatch()
        for task in self._tasks:
            task.cancel()

    def _changed(self, notification: Notification) -> None:
        name = notification.path.removeprefix(_ROOT + "/")
        if name in self._cached:
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
            if str(namespace) in self._cached:
                self._cached[str(namespace)] = policies = await self._read(namespace)
                await self._apply(namespace, policies)

    async def _read(self, namespace: NamespaceName) -> TopicPolicies:
        try:
            document, _ = await self._document(namespace)
        except NamespaceNotFound:
            return TopicPolicies()  # deleted: whoever wants to load a topic of it is told elsewhere
        try:
            return parse_policies(document)
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


def parse_policies(document: Mapping[str, Any]) -> TopicPolicies:
    """What of it concerns topics. BrokerError(METADATA) names the member that cannot be read."""
    ttl = document.get("message_ttl_in_seconds")
    retention = document.get("retention_policies")
    quotas = document.get("backlog_quota_map") or {}
    return TopicPolicies(
        None if ttl is None else _number(ttl, "message_ttl_in_seconds"),
        None if retention is None else parse_retention(retention),
        {_quota_type(name): parse_quota(quota) for name, quota in _object(quotas, "backlog_quota_map").items()},
    )


def parse_retention(value: Any) -> RetentionPolicy:
    """Apache's RetentionPolicies; a member that is missing is 0."""
    fields = _object(value, "retention_policies")
    return RetentionPolicy(
        _number(fields.get("retentionTimeInMinutes", 0), "retentionTimeInMinutes"),
        _number(fields.get("retentionSizeInMB", 0), "retentionSizeInMB"),
    )


def parse_quota(value: Any) -> BacklogQuota:
    """Apache's BacklogQuotaImpl, in which `limit` is the older name of `limitSize`. No policy given: producers are held."""
    fields = _object(value, "backlog quota")
    size = fields.get("limitSize")
    size = fields.get("limit", -1) if size is None else size
    policy = fields.get("policy") or QuotaPolicy.PRODUCER_REQUEST_HOLD.value
    if policy not in list(QuotaPolicy):
        raise BrokerError(ServerError.METADATA, f"policy: expected one of {', '.join(QuotaPolicy)}, not {policy!r}")
    return BacklogQuota(_number(size, "limitSize"), _number(fields.get("limitTime", -1), "limitTime"), QuotaPolicy(policy))


def quota_json(quota: BacklogQuota) -> dict[str, Any]:
    """With both names of the size, as Apache writes it."""
    size = quota.limit_bytes
    return {"limit": size, "limitSize": size, "limitTime": quota.limit_seconds, "policy": quota.policy.value}


def _quota_type(name: str) -> QuotaType:
    if name not in list(QuotaType):
        raise BrokerError(ServerError.METADATA, f"backlog_quota_map: expected {' or '.join(QuotaType)}, not {name!r}")
    return QuotaType(name)


def _number(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BrokerError(ServerError.METADATA, f"{name}: expected a whole number, not {value!r}")
    return value


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BrokerError(ServerError.METADATA, f"{name}: expected an object, not {value!r}")
    return value
