"""Routes for the policies of one topic, partitioned or not: read, set, remove (PersistentTopics).

Most are one table's (`topic_policy_table`). A change is in force, and stored in the namespace's `__change_events`, when it is
answered.
"""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ....policies.policies import RetentionPolicy
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.topic_name import TopicName
from ....service.topic_schemas import TopicSchemas
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.endpoints import Endpoint
from .access import AUTHORITATIVE, READ, WRITE, TopicPolicyAccess, endpoint
from .bodies import Int32, is_conflict
from .forms import TopicPolicyForms
from .table import POLICIES, DeclaredPolicy, stored, written


class TopicPolicyRoutes:
    """The handlers; one instance per server."""

    def __init__(self, access: TopicPolicyAccess, namespace_policies: NamespacePolicies, schemas: TopicSchemas) -> None:
        self._access, self._namespace_policies, self._schemas = access, namespace_policies, schemas
        self._forms = TopicPolicyForms(self._access)

    def routes(self) -> list[Endpoint]:
        return [
            *(each for policy in POLICIES for each in self._endpoints(policy)),
            *self._forms.routes(),
            endpoint("DELETE", "policies", "ALL", self.remove_all, (AUTHORITATIVE,)),
        ]

    def _endpoints(self, policy: DeclaredPolicy) -> list[Endpoint]:
        async def get(request: Request) -> Response:
            return await self._get(request, policy)

        async def put(request: Request) -> Response:
            return await self._set(request, policy)

        async def remove(request: Request) -> Response:
            return await self._access.change(request, lambda document: document.update(written(policy, None)))

        what, is_whole = f"{policy.path} of a topic", policy.body in (int, Int32, bool)
        taken = None if policy.missing else policy.body if is_whole else policy.body | None
        found = [
            endpoint("GET", policy.path, policy.name, get, READ, summary=f"Tells {what}", answer=policy.body or Any),
            endpoint(
                policy.set_method,
                policy.path,
                policy.name,
                put,
                WRITE,
                summary=f"Sets {what}",
                body=taken,
                body_optional=not is_whole,
            ),
        ]
        if policy.path != "schemaValidationEnforced":
            found.append(endpoint("DELETE", policy.path, policy.name, remove, WRITE, summary=f"Removes {what}"))
        return found

    async def _get(self, request: Request, policy: DeclaredPolicy) -> Response:
        topic = await self._access.existing(request)
        value = stored(policy, self._access.document(request, topic))
        if value is None and request.state.query["applied"]:
            value = await self._applied(topic, policy)
        value = policy.unset if value is None else value
        return no_content() if value is None else json_answer(value)

    async def _applied(self, topic: TopicName, policy: DeclaredPolicy) -> Any:
        """Returns the value in force for a topic without one of its own; None: no level has one."""
        if policy.of_schemas is not None:
            return await policy.of_schemas(self._schemas, topic)
        if policy.namespace_member:
            return (await self._namespace_policies.document(topic.namespace)).get(policy.namespace_member)
        return policy.applied(await self._access.in_force(topic))

    async def _set(self, request: Request, policy: DeclaredPolicy) -> Response:
        if policy.missing:
            await self._access.existing(request)
            raise Refusal(501, f"{policy.path} cannot be set: {policy.missing}")
        body = request.state.body
        if body is not None and policy.check is not None:
            policy.check(body)
        value = None if body is None else msgspec.to_builtins(body)
        if policy.path == "retention" and body is not None:
            topic = await self._access.existing(request)
            retention = RetentionPolicy(body.retention_time_in_minutes, body.retention_size_in_mb)
            if any(is_conflict(quota, retention) for quota in (await self._access.quotas(request, topic)).values()):
                raise Refusal(412, "Retention Quota must exceed configured backlog quota for topic. Please increase retention"
                              " quota and retry")  # fmt: skip
        return await self._access.change(request, lambda document: document.update(written(policy, value)))

    async def remove_all(self, request: Request) -> Response:
        """Removes all policies of a topic, those of all clusters too."""
        topic = self._access.whole_topic(request)
        await self._access.catalogue.namespaces.require(topic.namespace)
        await self._access.documents.remove(topic)
        return no_content()
