"""Routes for the policies of one topic, partitioned or not: read, set, remove (PersistentTopics).

Most are one table's (`topic_policy_table`); those with a form of their own are here. A change is in force, and stored in the
namespace's `__change_events`, when it is answered.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..service.broker_service import BrokerService
from ..service.errors import TopicNotFound
from ..service.topic_name import TopicName
from ..topic.policies import MEGABYTE, BacklogQuota, EffectivePolicies, QuotaPolicy, QuotaType, RetentionPolicy
from ..topic.policy_members import dispatch_rate_json, parse_quota, parse_retention, quota_json
from .answers import BadRequest, Refusal, json_answer, no_content
from .endpoints import Access, Endpoint, Handler, Query, Scope
from .names import TOPIC, topic_of
from .topic_policy_bodies import DispatchRateBody, Int32, Quota
from .topic_policy_table import POLICIES, DeclaredPolicy, stored

_GLOBAL = Query("isGlobal", bool, False, "Of all clusters, rather than of this one.")
_APPLIED = Query("applied", bool, False, "What holds, also where the namespace or the broker says it.")
_AUTHORITATIVE = Query("authoritative", bool, False)
_READ, _WRITE = (_GLOBAL, _APPLIED, _AUTHORITATIVE), (_GLOBAL, _AUTHORITATIVE)
_QUOTA_TYPE = Query("backlogQuotaType", QuotaType, QuotaType.DESTINATION_STORAGE)
_MESSAGE_BYTES_MAX = 5 << 20


class TopicPolicyRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[Endpoint]:
        return [
            *(endpoint for policy in POLICIES for endpoint in self._endpoints(policy)),
            *self._of("messageTTL", "TTL", self.get_ttl, self.set_ttl, self.remove_ttl, Query("messageTTL", int), answer=int),
            *self._of(
                "maxMessageSize", "MAX_PRODUCERS", self.get_size, self.set_size, self.remove_size, body=Int32, answer=int
            ),
            *self._of(
                "{subscription}/dispatchRate", "RATE", self.get_rate, self.set_rate, self.remove_rate, body=DispatchRateBody
            ),
            self._endpoint("GET", "backlogQuotaMap", "BACKLOG", self.get_quotas, _READ, answer=dict[str, Quota]),
            self._endpoint("POST", "backlogQuota", "BACKLOG", self.set_quota, (*_WRITE, _QUOTA_TYPE), body=Quota),
            self._endpoint("DELETE", "backlogQuota", "BACKLOG", self.remove_quota, (*_WRITE, _QUOTA_TYPE)),
            self._endpoint("DELETE", "policies", "ALL", self.remove_all, (_AUTHORITATIVE,)),
        ]

    def _endpoint(
        self, method: str, path: str, name: str, handler: Handler, query: tuple[Query, ...], *, summary: str = "", **types: Any
    ) -> Endpoint:
        access = Access(Scope.TOPIC_POLICY, name, method != "GET")
        return Endpoint(method, f"{TOPIC}/{path}", handler, access, query, summary=summary, **types)

    def _of(
        self,
        path: str,
        name: str,
        get: Handler,
        put: Handler,
        remove: Handler,
        *more: Query,
        body: Any = None,
        answer: Any = None,
    ) -> list[Endpoint]:
        return [
            self._endpoint("GET", path, name, get, _READ, answer=answer or body),
            self._endpoint("POST", path, name, put, (*_WRITE, *more), body=body),
            self._endpoint("DELETE", path, name, remove, _WRITE),
        ]

    def _endpoints(self, policy: DeclaredPolicy) -> list[Endpoint]:
        async def get(request: Request) -> Response:
            return await self._get(request, policy)

        async def put(request: Request) -> Response:
            return await self._set(request, policy)

        async def remove(request: Request) -> Response:
            return await self._change(request, lambda document: document.update({policy.member: None}))

        what, is_whole = f"{policy.path} of a topic", policy.body in (int, Int32, bool)
        taken = None if policy.missing else policy.body if is_whole else policy.body | None
        found = [
            self._endpoint("GET", policy.path, policy.name, get, _READ, summary=f"Tells {what}", answer=policy.body or Any),
            self._endpoint(
                policy.set_method,
                policy.path,
                policy.name,
                put,
                _WRITE,
                summary=f"Sets {what}",
                body=taken,
                body_optional=not is_whole,
            ),
        ]
        if policy.path != "schemaValidationEnforced":
            found.append(self._endpoint("DELETE", policy.path, policy.name, remove, _WRITE, summary=f"Removes {what}"))
        return found

    # those of the table

    async def _get(self, request: Request, policy: DeclaredPolicy) -> Response:
        topic = await self._existing(request)
        value = stored(policy, self._document(request, topic))
        if value is None and request.state.query["applied"]:
            value = policy.applied(await self._in_force(topic))
            if value is None and policy.namespace_member:
                namespace = await self._service.namespace_policies.document(topic.namespace)
                value = namespace.get(policy.namespace_member)
        value = policy.unset if value is None else value
        return no_content() if value is None else json_answer(value)

    async def _set(self, request: Request, policy: DeclaredPolicy) -> Response:
        if policy.missing:
            await self._existing(request)
            raise Refusal(501, f"{policy.path} cannot be set: {policy.missing}")
        body = request.state.body
        if body is not None and policy.check is not None:
            policy.check(body)
        value = None if body is None else msgspec.to_builtins(body)
        if policy.path == "retention" and body is not None:
            topic = await self._existing(request)
            retention = RetentionPolicy(body.retention_time_in_minutes, body.retention_size_in_mb)
            if any(_conflict(quota, retention) for quota in (await self._quotas(request, topic)).values()):
                raise Refusal(412, "Retention Quota must exceed configured backlog quota for topic. Please increase retention"
                              " quota and retry")  # fmt: skip
        return await self._change(request, lambda document: document.update({policy.member: value}))

    # those with a form of their own

    async def get_ttl(self, request: Request) -> Response:
        """Tells the time to live of a topic's messages, in seconds."""
        return await self._number(request, "messageTTLInSeconds", lambda policies: policies.message_ttl_seconds)

    async def set_ttl(self, request: Request) -> Response:
        """Sets the time to live of a topic's messages, in seconds."""
        seconds = request.state.query["messageTTL"]
        if seconds is not None and not 0 <= seconds < 1 << 31:
            raise Refusal(412, "Invalid value for message TTL")
        return await self._change(request, lambda document: document.update(messageTTLInSeconds=seconds))

    async def remove_ttl(self, request: Request) -> Response:
        """Removes the time to live of a topic's messages."""
        return await self._change(request, lambda document: document.update(messageTTLInSeconds=None))

    async def get_size(self, request: Request) -> Response:
        """Tells how large a message of a topic may be, in bytes."""
        return await self._number(request, "maxMessageSize", lambda policies: policies.max_message_size or None)

    async def set_size(self, request: Request) -> Response:
        """Sets how large a message of a topic may be, in bytes."""
        size = request.state.body
        if not 0 <= size <= _MESSAGE_BYTES_MAX:
            raise Refusal(
                412,
                "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the"
                " broker-level",
            )
        return await self._change(request, lambda document: document.update(maxMessageSize=size))

    async def remove_size(self, request: Request) -> Response:
        """Removes the bound on the size of a topic's messages."""
        return await self._change(request, lambda document: document.update(maxMessageSize=None))

    async def get_rate(self, request: Request) -> Response:
        """Tells the dispatch rate of one subscription."""
        topic, name = await self._existing(request), request.path_params["subscription"]
        value = self._document(request, topic).get("subscriptionPolicies", {}).get(name, {}).get("dispatchRate")
        if value is None and request.state.query["applied"]:
            value = dispatch_rate_json((await self._in_force(topic)).dispatch_rate_of(name))
        return no_content() if value is None else json_answer(value)

    async def set_rate(self, request: Request) -> Response:
        """Sets the dispatch rate of one subscription."""
        name, value = request.path_params["subscription"], msgspec.to_builtins(request.state.body)
        return await self._change(request, lambda document: _subscriptions(document).update({name: {"dispatchRate": value}}))

    async def remove_rate(self, request: Request) -> Response:
        """Removes the dispatch rate of one subscription."""
        name = request.path_params["subscription"]
        return await self._change(request, lambda document: _subscriptions(document).pop(name, None))

    async def get_quotas(self, request: Request) -> Response:
        """Tells the backlog quotas of a topic, by type."""
        topic = await self._existing(request)
        value = dict(self._document(request, topic).get("backLogQuotaMap", {}))
        if not value and request.state.query["applied"]:
            value = {kind.value: quota_json(quota) for kind, quota in (await self._in_force(topic)).quotas.items()}
        return json_answer(value)

    async def set_quota(self, request: Request) -> Response:
        """Sets one of the backlog quotas of a topic."""
        body, kind = request.state.body, request.state.query["backlogQuotaType"]
        quota = _quota(body, request)
        topic = await self._existing(request)
        if kind is QuotaType.DESTINATION_STORAGE and _conflict(quota, await self._retention(request, topic)):
            raise Refusal(412, "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and"
                          " retry")  # fmt: skip
        value = quota_json(quota)
        return await self._change(
            request, lambda document: document.setdefault("backLogQuotaMap", {}).update({kind.value: value})
        )

    async def remove_quota(self, request: Request) -> Response:
        """Removes one of the backlog quotas of a topic."""
        kind = request.state.query["backlogQuotaType"]
        return await self._change(request, lambda document: document.get("backLogQuotaMap", {}).pop(kind.value, None))

    async def remove_all(self, request: Request) -> Response:
        """Removes all policies of a topic, those of all clusters too."""
        topic = _whole(request)
        await self._service.namespaces.require(topic.namespace)
        await self._service.topic_policies.remove(topic)
        return no_content()

    # within

    async def _existing(self, request: Request) -> TopicName:
        """With its policies known."""
        topic = _whole(request)
        service = self._service
        await service.namespaces.require(topic.namespace)
        if not await service.topic_exists(topic) and not (await service.partitioned_topics.get(topic)).partitions:
            raise TopicNotFound(str(topic))
        await service.topic_policies.load(topic.namespace)
        return topic

    def _document(self, request: Request, topic: TopicName) -> Any:
        return self._service.topic_policies.document(topic, is_global=request.state.query["isGlobal"])

    async def _in_force(self, topic: TopicName) -> EffectivePolicies:
        """Of a partitioned topic, on its first partition."""
        partitions = (await self._service.partitioned_topics.get(topic)).partitions
        loaded = await self._service.topic(topic.partition(0) if partitions else topic, may_create=False)
        return loaded.upkeep.policies

    async def _quotas(self, request: Request, topic: TopicName) -> dict[QuotaType, BacklogQuota]:
        own = self._document(request, topic).get("backLogQuotaMap", {})
        return {**(await self._in_force(topic)).quotas, **{QuotaType(kind): parse_quota(value) for kind, value in own.items()}}

    async def _retention(self, request: Request, topic: TopicName) -> RetentionPolicy:
        own = self._document(request, topic).get("retentionPolicies")
        return (await self._in_force(topic)).retention if own is None else parse_retention(own)

    async def _number(self, request: Request, member: str, applied: Callable[[EffectivePolicies], int | None]) -> Response:
        topic = await self._existing(request)
        value = self._document(request, topic).get(member)
        if value is None and request.state.query["applied"]:
            value = applied(await self._in_force(topic))
        return no_content() if value is None else json_answer(value)

    async def _change(self, request: Request, edit: Callable[[dict[str, Any]], Any]) -> Response:
        topic = await self._existing(request)
        await self._service.topic_policies.change(topic, edit, is_global=request.state.query["isGlobal"])
        return no_content()


def _whole(request: Request) -> TopicName:
    topic = topic_of(request)
    if topic.is_partition:
        raise Refusal(412, "Not allowed to set/get topic policy for a partition")
    return topic


def _subscriptions(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document.setdefault("subscriptionPolicies", {})
    return found


def _quota(body: Quota, request: Request) -> BacklogQuota:
    if body.policy is None:
        path = request.path_params
        raise BadRequest(
            f"Set namespace[{path['tenant']}/{path['namespace']}] backlog quota failed because the data validation failed."
            " the attribute policy cannot be null"
        )
    size = body.limit if body.limit_size is None else body.limit_size
    return BacklogQuota(0 if size is None else size, body.limit_time, QuotaPolicy(body.policy))


def _conflict(quota: BacklogQuota, retention: RetentionPolicy) -> bool:
    """A backlog that may grow as large or as old as what is retained (AdminResource.checkBacklogQuota)."""
    if retention.megabytes <= 0 and retention.minutes <= 0:
        return False
    is_larger = retention.megabytes > 0 and quota.limit_bytes >= retention.megabytes * MEGABYTE
    return is_larger or (retention.minutes > 0 and quota.limit_seconds >= retention.minutes * 60)
