"""Routes for the policies of a namespace that say how long messages stay: retention, time to live, backlog quotas.

(Apache: Namespaces.) Statuses and reasons are Apache's. Decides whether values fit together; storing is the service's.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..errors import BrokerError
from ..service.broker_service import BrokerService
from ..topic.policies import MEGABYTE, BacklogQuota, QuotaType, RetentionPolicy
from ..topic.policy_members import parse_quota, parse_retention, quota_json
from .answers import BadRequest, Refusal, json_answer, no_content, read_json
from .names import namespace_of

Policy = TypeVar("Policy", RetentionPolicy, BacklogQuota)

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


class NamespaceRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._policies = service.namespace_policies

    def routes(self) -> list[BaseRoute]:
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/retention", self.get_retention),
            ("POST", "/retention", self.set_retention),
            ("DELETE", "/retention", self.remove_retention),
            ("GET", "/messageTTL", self.get_ttl),
            ("POST", "/messageTTL", self.set_ttl),
            ("DELETE", "/messageTTL", self.remove_ttl),
            ("GET", "/backlogQuotaMap", self.get_quotas),
            ("POST", "/backlogQuota", self.set_quota),
            ("DELETE", "/backlogQuota", self.remove_quota),
        ]
        return [Route(_NAMESPACE + path, handler, methods=[method]) for method, path, handler in table]

    async def get_retention(self, request: Request) -> Response:
        return await self._get(request, "retention_policies")

    async def set_retention(self, request: Request) -> Response:
        retention = _read(parse_retention, await read_json(request))
        _check_retention(retention)

        def edit(document: dict[str, Any]) -> None:
            if _conflict(_size_quota(document), retention):
                raise Refusal(412, "Retention Quota must exceed configured backlog quota for namespace.")
            value = {"retentionTimeInMinutes": retention.minutes, "retentionSizeInMB": retention.megabytes}
            document["retention_policies"] = value

        return await self._change(request, edit)

    async def remove_retention(self, request: Request) -> Response:
        return await self._change(request, lambda document: document.update(retention_policies=None))

    async def get_ttl(self, request: Request) -> Response:
        return await self._get(request, "message_ttl_in_seconds")

    async def set_ttl(self, request: Request) -> Response:
        seconds = await read_json(request)
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise BadRequest("expected a number of seconds")
        if seconds < 0:
            raise Refusal(412, "Invalid value for message TTL")
        return await self._change(request, lambda document: document.update(message_ttl_in_seconds=seconds))

    async def remove_ttl(self, request: Request) -> Response:
        return await self._change(request, lambda document: document.update(message_ttl_in_seconds=None))

    async def get_quotas(self, request: Request) -> Response:
        document = await self._policies.document(namespace_of(request))
        return json_answer(document.get("backlog_quota_map") or {})

    async def set_quota(self, request: Request) -> Response:
        kind, quota = _quota_type(request), _read(parse_quota, await read_json(request))

        def edit(document: dict[str, Any]) -> None:
            retention = document.get("retention_policies")
            is_size = kind is QuotaType.DESTINATION_STORAGE
            if is_size and retention is not None and _conflict(quota, parse_retention(retention)):
                reason = (
                    "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry"
                )
                raise Refusal(412, reason)
            document["backlog_quota_map"] = (document.get("backlog_quota_map") or {}) | {kind.value: quota_json(quota)}

        return await self._change(request, edit)

    async def remove_quota(self, request: Request) -> Response:
        kind = _quota_type(request)

        def edit(document: dict[str, Any]) -> None:
            quotas = document.get("backlog_quota_map") or {}
            document["backlog_quota_map"] = {name: value for name, value in quotas.items() if name != kind}

        return await self._change(request, edit)

    async def _get(self, request: Request, member: str) -> Response:
        """204 when it is not set, as Apache answers null."""
        value = (await self._policies.document(namespace_of(request))).get(member)
        return no_content() if value is None else json_answer(value)

    async def _change(self, request: Request, edit: Callable[[dict[str, Any]], None]) -> Response:
        def without_nulls(document: dict[str, Any]) -> None:
            edit(document)
            for member in [member for member, value in document.items() if value is None]:
                del document[member]

        await self._policies.change(namespace_of(request), without_nulls)
        return no_content()


def _read(parse: Callable[[Any], Policy], body: Any) -> Policy:
    try:
        return parse(body)
    except BrokerError as error:
        raise BadRequest(error.message) from error


def _quota_type(request: Request) -> QuotaType:
    name = request.query_params.get("backlogQuotaType") or QuotaType.DESTINATION_STORAGE.value
    if name not in list(QuotaType):
        raise BadRequest(f"backlogQuotaType: expected {' or '.join(QuotaType)}, not {name}")
    return QuotaType(name)


def _check_retention(retention: RetentionPolicy) -> None:
    if retention.megabytes < -1:
        raise Refusal(412, "Invalid retention policy: size limit must be >= -1")
    if retention.minutes < -1:
        raise Refusal(412, "Invalid retention policy: time limit must be >= -1")
    if (retention.minutes == 0) != (retention.megabytes == 0):
        raise Refusal(
            412,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a"
            " non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits"
            " must be set to 0.",
        )


def _size_quota(document: dict[str, Any]) -> BacklogQuota | None:
    found = (document.get("backlog_quota_map") or {}).get(QuotaType.DESTINATION_STORAGE.value)
    return None if found is None else parse_quota(found)


def _conflict(quota: BacklogQuota | None, retention: RetentionPolicy) -> bool:
    """A backlog that may grow as large or as old as what is retained (NamespacesBase.checkBacklogQuota)."""
    if quota is None or retention.megabytes <= 0 or retention.minutes <= 0:
        return False
    return quota.limit_bytes >= retention.megabytes * MEGABYTE or quota.limit_seconds >= retention.minutes * 60
