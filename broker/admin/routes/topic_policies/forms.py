"""Routes of the topic policies that have a form of their own: time to live, message size, quotas, one subscription's rate.

(PersistentTopics.) The others are `topic_policies`'.
"""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ....policies.members import dispatch_rate_json, quota_json
from ....policies.policies import BacklogQuota, QuotaPolicy, QuotaType
from ...rest.answers import BadRequest, Refusal, json_answer, no_content
from ...rest.endpoints import Endpoint, Handler, Query
from .access import READ, WRITE, TopicPolicyAccess, endpoint
from .bodies import DispatchRateBody, Int32, Quota, is_conflict

_QUOTA_TYPE = Query("backlogQuotaType", QuotaType, QuotaType.DESTINATION_STORAGE)
_MESSAGE_BYTES_MAX = 5 << 20


class TopicPolicyForms:
    """The handlers; one instance per server."""

    def __init__(self, access: TopicPolicyAccess) -> None:
        self._access = access

    def routes(self) -> list[Endpoint]:
        return [
            *_of("messageTTL", "TTL", self.get_ttl, self.set_ttl, self.remove_ttl, Query("messageTTL", int), answer=int),
            *_of("maxMessageSize", "MAX_PRODUCERS", self.get_size, self.set_size, self.remove_size, body=Int32, answer=int),
            *_of("{subscription}/dispatchRate", "RATE", self.get_rate, self.set_rate, self.remove_rate, body=DispatchRateBody),
            endpoint("GET", "backlogQuotaMap", "BACKLOG", self.get_quotas, READ, answer=dict[str, Quota]),
            endpoint("POST", "backlogQuota", "BACKLOG", self.set_quota, (*WRITE, _QUOTA_TYPE), body=Quota),
            endpoint("DELETE", "backlogQuota", "BACKLOG", self.remove_quota, (*WRITE, _QUOTA_TYPE)),
        ]

    async def get_ttl(self, request: Request) -> Response:
        """Tells the time to live of a topic's messages, in seconds."""
        return await self._access.number(request, "messageTTLInSeconds", lambda policies: policies.message_ttl_seconds)

    async def set_ttl(self, request: Request) -> Response:
        """Sets the time to live of a topic's messages, in seconds."""
        seconds = request.state.query["messageTTL"]
        if seconds is not None and not 0 <= seconds < 1 << 31:
            raise Refusal(412, "Invalid value for message TTL")
        return await self._access.change(request, lambda document: document.update(messageTTLInSeconds=seconds))

    async def remove_ttl(self, request: Request) -> Response:
        """Removes the time to live of a topic's messages."""
        return await self._access.change(request, lambda document: document.update(messageTTLInSeconds=None))

    async def get_size(self, request: Request) -> Response:
        """Tells how large a message of a topic may be, in bytes."""
        return await self._access.number(request, "maxMessageSize", lambda policies: policies.max_message_size or None)

    async def set_size(self, request: Request) -> Response:
        """Sets how large a message of a topic may be, in bytes."""
        size = request.state.body
        if not 0 <= size <= _MESSAGE_BYTES_MAX:
            raise Refusal(
                412,
                "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the"
                " broker-level",
            )
        return await self._access.change(request, lambda document: document.update(maxMessageSize=size))

    async def remove_size(self, request: Request) -> Response:
        """Removes the bound on the size of a topic's messages."""
        return await self._access.change(request, lambda document: document.update(maxMessageSize=None))

    async def get_rate(self, request: Request) -> Response:
        """Tells the dispatch rate of one subscription."""
        topic, name = await self._access.existing(request), request.path_params["subscription"]
        value = self._access.document(request, topic).get("subscriptionPolicies", {}).get(name, {}).get("dispatchRate")
        if value is None and request.state.query["applied"]:
            value = dispatch_rate_json((await self._access.in_force(topic)).dispatch_rate_of(name))
        return no_content() if value is None else json_answer(value)

    async def set_rate(self, request: Request) -> Response:
        """Sets the dispatch rate of one subscription."""
        name, value = request.path_params["subscription"], msgspec.to_builtins(request.state.body)
        return await self._access.change(
            request, lambda document: _subscriptions(document).update({name: {"dispatchRate": value}})
        )

    async def remove_rate(self, request: Request) -> Response:
        """Removes the dispatch rate of one subscription."""
        name = request.path_params["subscription"]
        return await self._access.change(request, lambda document: _subscriptions(document).pop(name, None))

    async def get_quotas(self, request: Request) -> Response:
        """Tells the backlog quotas of a topic, by type."""
        topic = await self._access.existing(request)
        value = dict(self._access.document(request, topic).get("backLogQuotaMap", {}))
        if not value and request.state.query["applied"]:
            value = {kind.value: quota_json(quota) for kind, quota in (await self._access.in_force(topic)).quotas.items()}
        return json_answer(value)

    async def set_quota(self, request: Request) -> Response:
        """Sets one of the backlog quotas of a topic."""
        body, kind = request.state.body, request.state.query["backlogQuotaType"]
        quota = _quota(body, request)
        topic = await self._access.existing(request)
        if is_conflict(quota, await self._access.retention(request, topic)):
            raise Refusal(412, "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and"
                          " retry")  # fmt: skip
        value = quota_json(quota)
        return await self._access.change(
            request, lambda document: document.setdefault("backLogQuotaMap", {}).update({kind.value: value})
        )

    async def remove_quota(self, request: Request) -> Response:
        """Removes one of the backlog quotas of a topic."""
        kind = request.state.query["backlogQuotaType"]
        return await self._access.change(request, lambda document: document.get("backLogQuotaMap", {}).pop(kind.value, None))


def _of(
    path: str, name: str, get: Handler, put: Handler, remove: Handler, *more: Query, body: Any = None, answer: Any = None
) -> list[Endpoint]:
    return [
        endpoint("GET", path, name, get, READ, answer=answer or body),
        endpoint("POST", path, name, put, (*WRITE, *more), body=body),
        endpoint("DELETE", path, name, remove, WRITE),
    ]


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
