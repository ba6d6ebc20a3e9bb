"""Routes for operators' notes on a topic or a subscription: properties, and permissions of a topic.

Properties of a partitioned topic are in its metadata, of another in its managed ledger, of a subscription in its cursor.
Permissions are kept with the namespace's policies (AuthPolicies.destination_auth) also without authentication.
"""

import json
from collections.abc import Callable
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicNotFound
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.topic_name import TopicName
from ....topic.contract import Topic
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.each_partition import EachPartition, where_subscribed
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import TOPIC, topic_of

Action = Literal["produce", "consume", "functions", "sources", "sinks", "packages"]
Properties = dict[str, str]
_AUTHORITATIVE = Query("authoritative", bool, False)
_SUBSCRIPTION = TOPIC + "/subscription/{subscription}/properties"


class TopicPropertyRoutes:
    """The handlers; one instance per server."""

    def __init__(
        self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle, namespace_policies: NamespacePolicies
    ) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle
        self._namespace_policies = namespace_policies
        self._parts = EachPartition(catalogue, lookup, lifecycle)

    def routes(self) -> list[Endpoint]:
        def needs(operation: str) -> Access:
            return Access(Kind.TOPIC, operation)

        plain, tenant = (_AUTHORITATIVE,), Access(Kind.TENANT_ADMIN)
        one, both = TOPIC + "/permissions/{role}", (_AUTHORITATIVE, Query("key"))
        return [
            Endpoint("GET", TOPIC + "/properties", self.properties, needs("GET_METADATA"), plain, answer=Properties),
            Endpoint(
                "PUT",
                TOPIC + "/properties",
                self.update,
                needs("UPDATE_METADATA"),
                plain,
                Properties | None,
                body_optional=True,
            ),
            Endpoint("DELETE", TOPIC + "/properties", self.remove, needs("DELETE_METADATA"), both),
            Endpoint("GET", _SUBSCRIPTION, self.of_subscription, needs("CONSUME"), plain, answer=Properties),
            Endpoint(
                "PUT", _SUBSCRIPTION, self.set_of_subscription, needs("CONSUME"), plain, Properties | None, body_optional=True
            ),
            Endpoint("GET", TOPIC + "/permissions", self.permissions, tenant, answer=dict[str, list[Action]]),
            Endpoint("POST", one, self.grant, tenant, body=list[Action]),
            Endpoint("DELETE", one, self.revoke, tenant),
        ]

    async def properties(self, request: Request) -> Response:
        """Tells the properties of a topic; 204 for a partitioned topic that has none."""
        name = topic_of(request)
        found = await self._catalogue.partitioned_topics.get(name)
        if found.partitions:
            return json_answer(dict(found.properties)) if found.properties else no_content()
        topic = await self._lifecycle.topic(name, may_create=False)
        return json_answer(dict(topic.operations.log.properties))

    async def update(self, request: Request) -> Response:
        """Sets these properties of a topic, and leaves the others."""
        given = request.state.body or {}
        return await self._change(request, lambda properties: properties.update(given))

    async def remove(self, request: Request) -> Response:
        """Removes one property of a topic."""
        key = request.state.query["key"]
        if not key:
            raise Refusal(412, "key: expected the property that is to be removed")
        return await self._change(request, lambda properties: properties.pop(key, None))

    async def _change(self, request: Request, edit: Callable[[dict[str, str]], Any]) -> Response:
        name = topic_of(request)
        found = await self._catalogue.partitioned_topics.get(name)
        if found.partitions:
            properties = dict(found.properties)
            edit(properties)
            await self._catalogue.partitioned_topics.set_properties(name, properties)
        else:
            await (await self._lifecycle.topic(name, may_create=False)).operations.change_properties(edit)
        return no_content()

    async def of_subscription(self, request: Request) -> Response:
        """Tells the properties of a subscription."""
        name = request.path_params["subscription"]

        async def tell(topic: Topic) -> Properties:
            return dict(topic.operations.subscription_properties(name))

        found: Properties = {}
        for each in await self._parts.do(request, where_subscribed(request, tell)):
            found |= each
        return json_answer(found)

    async def set_of_subscription(self, request: Request) -> Response:
        """Sets the properties of a subscription, in place of the former ones; on each partition that has it."""
        name, properties = request.path_params["subscription"], request.state.body or {}
        work = where_subscribed(request, lambda topic: topic.operations.set_subscription_properties(name, properties))
        await self._parts.do(request, work, json.dumps(properties).encode())
        return no_content()

    async def permissions(self, request: Request) -> Response:
        """Lists each role's permissions on a topic, those of the namespace included."""
        name = await self._existing(request)
        auth = (await self._namespace_policies.document(name.namespace)).get("auth_policies") or {}
        merged: dict[str, list[str]] = {role: list(actions) for role, actions in (auth.get("namespace_auth") or {}).items()}
        for each in dict.fromkeys([str(name.partitioned), str(name)]):
            for role, actions in ((auth.get("destination_auth") or {}).get(each) or {}).items():
                merged[role] = sorted({*merged.get(role, []), *actions})
        return json_answer(merged)

    async def grant(self, request: Request) -> Response:
        """Replaces a role's permissions on a topic."""
        actions = list(dict.fromkeys(request.state.body))
        return await self._change_roles(request, lambda roles, role: roles.update({role: actions}))

    async def revoke(self, request: Request) -> Response:
        """Takes a role's permissions on a topic."""
        return await self._change_roles(request, lambda roles, role: roles.pop(role, None))

    async def _change_roles(self, request: Request, edit: Callable[[dict[str, Any], str], Any]) -> Response:
        name, role = await self._existing(request), request.path_params["role"]

        def change(document: dict[str, Any]) -> None:
            topics = document.setdefault("auth_policies", {}).setdefault("destination_auth", {})
            roles = topics.setdefault(str(name), {})
            edit(roles, role)
            if not roles:
                del topics[str(name)]

        await self._namespace_policies.change(name.namespace, change)
        return no_content()

    async def _existing(self, request: Request) -> TopicName:
        name = topic_of(request)
        await self._catalogue.namespaces.require(name.namespace)
        partitions = (await self._catalogue.partitioned_topics.get(name)).partitions
        if not partitions and not await self._catalogue.topic_exists(name):
            raise TopicNotFound(str(name))
        return name
