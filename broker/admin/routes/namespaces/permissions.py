"""Routes for permissions of roles in a namespace, and on its subscriptions (Apache: Namespaces, AuthPolicies).

Permissions are kept also without authentication, as there; the authorizer reads them.
"""

from collections.abc import Callable
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from ....security.authorization.needs import Kind
from ....service.policies.namespace_policies import NamespacePolicies
from ...rest.answers import json_answer
from ...rest.endpoints import Access, Endpoint
from ...rest.names import namespace_of
from .policies import NAMESPACE, Document, change

Action = Literal["produce", "consume", "functions", "sources", "sinks", "packages"]
_PERMISSIONS = NAMESPACE + "/permissions"
_ROLES, _SUBSCRIPTIONS, _TOPICS = "namespace_auth", "subscription_auth_roles", "destination_auth"


class PermissionRoutes:
    """The handlers; one instance per server."""

    def __init__(self, namespace_policies: NamespacePolicies) -> None:
        self._namespace_policies = namespace_policies

    def routes(self) -> list[Endpoint]:
        def access(operation: str) -> Access:
            return Access(Kind.NAMESPACE, operation)

        grant, revoke, get = access("GRANT_PERMISSION"), access("REVOKE_PERMISSION"), access("GET_PERMISSION")
        one, subscription = _PERMISSIONS + "/{role}", _PERMISSIONS + "/subscription"
        return [
            Endpoint("GET", _PERMISSIONS, self.roles, get, answer=dict[str, list[Action]]),
            Endpoint("POST", one, self.grant, grant, body=list[Action]),
            Endpoint("DELETE", one, self.revoke, revoke),
            Endpoint("GET", subscription, self.subscriptions, get, answer=dict[str, list[str]]),
            Endpoint("POST", subscription + "/{subscription}", self.grant_subscription, grant, body=list[str]),
            Endpoint("DELETE", _PERMISSIONS + "/{subscription}/{role}", self.revoke_subscription, revoke),
        ]

    async def roles(self, request: Request) -> Response:
        """Tells the permissions of each role in the namespace."""
        return json_answer(await self._auth(request, _ROLES))

    async def grant(self, request: Request) -> Response:
        """Replaces the permissions of a role."""
        role, actions = request.path_params["role"], list(dict.fromkeys(request.state.body))
        return await self._change(request, _ROLES, lambda roles: {**roles, role: actions})

    async def revoke(self, request: Request) -> Response:
        """A role that may nothing is fine."""
        role = request.path_params["role"]
        return await self._change(request, _ROLES, lambda roles: {name: each for name, each in roles.items() if name != role})

    async def subscriptions(self, request: Request) -> Response:
        """Tells the roles that may use a subscription of this name."""
        return json_answer(await self._auth(request, _SUBSCRIPTIONS))

    async def grant_subscription(self, request: Request) -> Response:
        """Replaces the roles by these."""
        name, roles = request.path_params["subscription"], list(dict.fromkeys(request.state.body))
        return await self._change(request, _SUBSCRIPTIONS, lambda before: {**before, name: roles})

    async def revoke_subscription(self, request: Request) -> Response:
        """One role of the subscription; without any left, it is anybody's again."""
        name, role = request.path_params["subscription"], request.path_params["role"]

        def edit(before: Document) -> Document:
            left = [each for each in before.get(name) or () if each != role]
            others = {other: roles for other, roles in before.items() if other != name}
            return {**others, name: left} if left else others

        return await self._change(request, _SUBSCRIPTIONS, edit)

    async def _auth(self, request: Request, member: str) -> Any:
        document = await self._namespace_policies.document(namespace_of(request))
        return (document.get("auth_policies") or {}).get(member) or {}

    async def _change(self, request: Request, member: str, edit: Callable[[Document], Document]) -> Response:
        def edit_document(document: Document) -> None:
            policies = {_ROLES: {}, _TOPICS: {}, _SUBSCRIPTIONS: {}} | (document.get("auth_policies") or {})
            document["auth_policies"] = policies | {member: edit(policies.get(member) or {})}

        return await change(self._namespace_policies, request, edit_document)
