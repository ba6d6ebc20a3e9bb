"""Routes that get, set and remove the policies of the table (Apache: Namespaces). Decides nothing: the table does."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.policies.namespace_policies import NamespacePolicies
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.bodies import plain
from ...rest.endpoints import SUPER_USER, Access, Endpoint
from ...rest.names import namespace_of
from .policy_checks import check_auto_partitions
from .policy_table import OFFLOAD, POLICIES, NamespacePolicy

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
Document = dict[str, Any]


async def change(policies: NamespacePolicies, request: Request, edit: Callable[[Document], None]) -> Response:
    """Changes the policies of the namespace in the path; members that `edit` sets to None are left out."""

    def without_nulls(document: Document) -> None:
        edit(document)
        for member in [member for member, value in document.items() if value is None]:
            del document[member]

    await policies.change(namespace_of(request), without_nulls)
    return no_content()


class NamespacePolicyRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, namespace_policies: NamespacePolicies, cluster: str) -> None:
        self._catalogue, self._namespace_policies, self._cluster = catalogue, namespace_policies, cluster

    def routes(self) -> list[Endpoint]:
        offloads = Access(Kind.NAMESPACE_POLICY, "OFFLOAD", writes=True)
        remove_offloads = partial(self._remove, _named("offloadPolicies"))
        return [
            *(endpoint for policy in POLICIES for endpoint in self._of(policy)),
            Endpoint(
                "DELETE", NAMESPACE + "/removeOffloadPolicies", remove_offloads, offloads, summary="Remove offloadPolicies."
            ),
            Endpoint("GET", NAMESPACE + "/scanOffloadedLedgers", self.scan_offloaded, Access(Kind.NAMESPACE_POLICY, "OFFLOAD")),
        ]

    def _of(self, policy: NamespacePolicy) -> list[Endpoint]:
        reads = Access(Kind.NAMESPACE_POLICY, policy.policy)
        writes = SUPER_USER if policy.by_super_user else Access(Kind.NAMESPACE_POLICY, policy.policy, writes=True)
        path, body = f"{NAMESPACE}/{policy.name}", None if "{" in policy.path else policy.body
        setting = Endpoint(
            policy.set_by,
            f"{NAMESPACE}/{policy.path}",
            partial(self._set, policy),
            writes,
            body=body,
            body_optional=policy.is_optional,
            summary=f"Set {policy.name}." + (f" Answered 501: {policy.missing}." if policy.missing else ""),
        )
        getting = Endpoint(
            "GET",
            path,
            partial(self._get, policy),
            reads,
            answer=policy.body or bool,
            summary=f"Get {policy.name}; 204: not set.",
        )
        removing = Endpoint("DELETE", path, partial(self._remove, policy), writes, summary=f"Remove {policy.name}.")
        return [getting, setting, *([removing] if policy.is_removable else [])]

    async def _get(self, policy: NamespacePolicy, request: Request) -> Response:
        value = (await self._namespace_policies.document(namespace_of(request))).get(policy.member)
        if policy.is_by_cluster:
            value = (value or {}).get(self._cluster)
        value = policy.default if value is None else value
        return no_content() if value is None else json_answer(value)

    async def _set(self, policy: NamespacePolicy, request: Request) -> Response:
        value = self._value(policy, request)
        if value is None:
            return await self._remove(policy, request)
        await self._catalogue.namespaces.require(namespace_of(request))
        policy.require(value)
        if policy.name == "autoTopicCreation":
            check_auto_partitions(value, self._catalogue.partitioned_topics.partitions_max)

        def edit(document: Document) -> None:
            if policy.fits is not None:
                policy.fits(document, value)
            self._put(policy, document, value)

        return await change(self._namespace_policies, request, edit)

    def _value(self, policy: NamespacePolicy, request: Request) -> Any:
        if "{" in policy.path:
            return request.path_params[policy.path.partition("{")[2].removesuffix("}")]
        return True if policy.body is None else plain(request.state.body)

    async def _remove(self, policy: NamespacePolicy, request: Request) -> Response:
        return await change(self._namespace_policies, request, lambda document: self._put(policy, document, policy.removed))

    def _put(self, policy: NamespacePolicy, document: Document, value: Any) -> None:
        for member in (policy.member, *policy.twins):
            if policy.is_by_cluster:
                others = {name: each for name, each in (document.get(member) or {}).items() if name != self._cluster}
                document[member] = others if value is None else {**others, self._cluster: value}
            else:
                document[member] = value

    async def scan_offloaded(self, request: Request) -> Response:
        """Scans offloaded ledgers: not supported."""
        raise Refusal(501, f"scanOffloadedLedgers is not supported: {OFFLOAD}")


def _named(name: str) -> NamespacePolicy:
    return next(policy for policy in POLICIES if policy.name == name)
