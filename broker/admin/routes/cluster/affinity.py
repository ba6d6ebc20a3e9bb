"""Routes for failure domains and anti-affinity groups (Apache: ClustersBase failureDomains, Namespaces antiAffinity; PIP-7).

Paths, statuses and reasons as there. Changes count for bundles that are placed from now on.
"""

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataStore, NoNode

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.catalogue.namespaces import to_json
from ....service.load.placement.rules_driver import ANTI_AFFINITY_GROUP, decode_brokers, decode_group, domains_path
from ....service.ownership.namespace_bundles import LOCAL_POLICIES
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.topic_name import NamespaceName
from ...rest.answers import BadRequest, Refusal, json_answer, no_content, text_answer
from ...rest.bodies import Brokers
from ...rest.endpoints import SUPER_USER, Access, Endpoint, Query, Text
from ...rest.names import namespace_of, require_cluster

_DOMAINS = "/admin/v2/clusters/{cluster}/failureDomains"
_GROUP = "/admin/v2/namespaces/{tenant}/{namespace}/antiAffinity"
_ATTEMPTS_MAX = 5


class AffinityRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, namespace_policies: NamespacePolicies, store: MetadataStore) -> None:
        self._catalogue, self._namespace_policies, self._store = catalogue, namespace_policies, store

    def routes(self) -> list[Endpoint]:
        def cluster(operation: str) -> Access:
            return Access(Kind.CLUSTER, operation)

        def group(*, writes: bool) -> Access:
            return Access(Kind.NAMESPACE_POLICY, "ANTI_AFFINITY", writes)

        one, of_group = _DOMAINS + "/{domain}", "/namespaces/{cluster}/antiAffinity/{group}"
        tenant = (Query("property"), Query("tenant", description="Another name of `property`."))
        return [
            Endpoint("GET", _DOMAINS, self.domains, cluster("GET_FAILURE_DOMAIN"), answer=dict[str, Brokers]),
            Endpoint("GET", one, self.domain, cluster("GET_FAILURE_DOMAIN"), answer=Brokers),
            Endpoint("POST", one, self.set_domain, cluster("UPDATE_FAILURE_DOMAIN"), body=Brokers),
            Endpoint("DELETE", one, self.delete_domain, cluster("DELETE_FAILURE_DOMAIN"), answer=Text.NOTHING),
            Endpoint("GET", _GROUP, self.group, group(writes=False), answer=Text.LABELLED_JSON),
            Endpoint("POST", _GROUP, self.set_group, group(writes=True), body=Text.TEXT),
            Endpoint("DELETE", _GROUP, self.delete_group, group(writes=True)),
            Endpoint("GET", "/admin/v2" + of_group, self.namespaces, SUPER_USER, tenant, answer=list[str]),
            # Apache's Java client and pulsar-admin ask at the first version's path (NamespacesImpl.getAntiAffinityNamespaces)
            Endpoint("GET", "/admin" + of_group, self.namespaces, SUPER_USER, tenant, answer=list[str]),
        ]

    # ---- Failure domains

    async def domains(self, request: Request) -> Response:
        """FailureDomain by name; none for a cluster that does not exist."""
        found = await self._domains(request.path_params["cluster"])
        return json_answer({name: {"brokers": brokers} for name, brokers in found.items()})

    async def domain(self, request: Request) -> Response:
        """The brokers of one failure domain."""
        cluster, name = await require_cluster(request, self._store), request.path_params["domain"]
        found = await self._store.get(f"{domains_path(cluster)}/{name}")
        if found is None:
            raise Refusal(404, f"Domain {name} for cluster {cluster} does not exist")
        return json_answer({"brokers": decode_brokers(found.value)})

    async def set_domain(self, request: Request) -> Response:
        """Made or replaced; a broker is in one domain only (409)."""
        cluster, name = await require_cluster(request, self._store), request.path_params["domain"]
        brokers = list(dict.fromkeys(request.state.body.brokers))
        for other, held in (await self._domains(cluster)).items():
            twice = [broker for broker in held if broker in brokers]
            if other != name and twice:
                raise Refusal(409, f"[{', '.join(twice)}] already exists in {other}")
        await self._store.put(f"{domains_path(cluster)}/{name}", to_json({"brokers": brokers}))
        return no_content()

    async def delete_domain(self, request: Request) -> Response:
        """Deletes a failure domain; its brokers belong to none then."""
        cluster, name = await require_cluster(request, self._store), request.path_params["domain"]
        try:
            await self._store.delete(f"{domains_path(cluster)}/{name}")
        except NoNode:
            raise Refusal(404, f"Domain-name {name} or cluster {cluster} does not exist") from None
        return Response()

    async def _domains(self, cluster: str) -> dict[str, list[str]]:
        path, domains = domains_path(cluster), {}
        for name in await self._store.children(path):
            found = await self._store.get(f"{path}/{name}")
            if found is not None:
                domains[name] = decode_brokers(found.value)
        return domains

    # ---- Anti-affinity groups

    async def group(self, request: Request) -> Response:
        """Bare text; 204 for a namespace that is in none."""
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        group = await self._group(namespace)
        return text_answer(group) if group else no_content()

    async def set_group(self, request: Request) -> Response:
        """The body is the name of the group."""
        group = request.state.body
        if not group.strip():
            raise Refusal(412, "antiAffinityGroup can't be empty")
        await self._change(namespace_of(request), lambda document: document | {ANTI_AFFINITY_GROUP: group})
        return no_content()

    async def delete_group(self, request: Request) -> Response:
        """The namespace is in no group any more."""
        await self._change(namespace_of(request), lambda document: {**document, ANTI_AFFINITY_GROUP: None})
        return no_content()

    async def namespaces(self, request: Request) -> Response:
        """`property`: of this tenant. Those of one group, whose name is compared without its case."""
        await require_cluster(request, self._store)
        query, group = request.state.query, request.path_params["group"]
        tenant = query["property"] or query["tenant"]
        if not tenant:
            raise BadRequest("Tenant should not be null")
        names = [NamespaceName(tenant, name) for name in await self._store.children(f"/admin/policies/{tenant}")]
        return json_answer([str(name) for name in names if (await self._group(name)).lower() == group.lower()])

    async def _group(self, namespace: NamespaceName) -> str:
        found = await self._store.get(f"{LOCAL_POLICIES}/{namespace}")
        return "" if found is None else decode_group(found.value)

    async def _change(self, namespace: NamespaceName, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes LocalPolicies, and keeps their other members, such as the bundles."""
        policies = await self._namespace_policies.document(namespace)
        path = f"{LOCAL_POLICIES}/{namespace}"
        for _ in range(_ATTEMPTS_MAX):
            found = await self._store.get(path)
            before = {"bundles": policies.get("bundles"), "migrated": False} if found is None else json.loads(found.value)
            after = {name: value for name, value in edit(before).items() if value is not None}
            try:
                await self._store.put(path, to_json(after), MUST_NOT_EXIST if found is None else found.stat.version)
            except BadVersion:
                continue  # another writer was first: apply the change to its version
            return
        raise Refusal(409, f"the local policies of {namespace} are changed by others all the time: try again")
