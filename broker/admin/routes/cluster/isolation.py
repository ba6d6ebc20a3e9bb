"""Routes for the brokers that may serve a namespace (Apache: ClustersBase, namespaceIsolationPolicies).

Paths, statuses and reasons as there. A policy is written by compare-and-set; setting one unloads the namespaces that it
concerns.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataStore

from ....security.authorization.needs import Kind
from ....service.addresses import BROKERS, broker_id
from ....service.load.placement.isolation import (
    InvalidPolicy,
    IsolationPolicies,
    IsolationPolicy,
    decode_policies,
    encode_policies,
    parse_policy,
    policy_document,
    to_unload,
)
from ....service.load.placement.rules_driver import isolation_path
from ....service.lookup import Lookup
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.topic_name import NamespaceName
from ...rest.answers import BadRequest, Refusal, json_answer, no_content
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import require_cluster
from ..namespaces.unloading import unload_namespace

_POLICIES = "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies"
_ATTEMPTS_MAX = 5


class IsolationRoutes:
    """The handlers; one instance per server."""

    def __init__(self, lookup: Lookup, namespace_policies: NamespacePolicies, store: MetadataStore) -> None:
        self._lookup, self._namespace_policies, self._store = lookup, namespace_policies, store

    def routes(self) -> list[Endpoint]:
        def access(*, writes: bool = False) -> Access:
            return Access(Kind.CLUSTER_POLICY, "NAMESPACE_ISOLATION", writes)

        one, of_broker, found = _POLICIES + "/{policy}", _POLICIES + "/brokers/{broker}", dict[str, Any]
        unloads = (
            Query("unloadBundles", bool, True, "Whether namespaces of the policy are unloaded, so that it holds at once."),
        )
        return [
            Endpoint("GET", _POLICIES, self.all, access(), answer=dict[str, found]),  # type: ignore[valid-type]
            Endpoint("GET", _POLICIES + "/brokers", self.brokers, access(), answer=list[found]),  # type: ignore[valid-type]
            Endpoint("GET", of_broker, self.broker, access(), answer=found),
            Endpoint("GET", one, self.get, access(), answer=found),
            Endpoint("POST", one, self.set, access(writes=True), unloads, dict[str, Any]),
            Endpoint("DELETE", one, self.delete, access(writes=True)),
        ]

    async def all(self, request: Request) -> Response:
        """All isolation policies of a cluster, by name."""
        cluster = await require_cluster(request, self._store, 404)
        policies = await self._require(cluster)
        return json_answer({name: policy_document(policy) for name, policy in policies.by_name.items()})

    async def get(self, request: Request) -> Response:
        """One isolation policy."""
        cluster, name = await require_cluster(request, self._store), request.path_params["policy"]
        policy = (await self._require(cluster)).by_name.get(name)
        if policy is None:
            raise Refusal(404, f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}")
        return json_answer(policy_document(policy))

    async def brokers(self, request: Request) -> Response:
        """BrokerNamespaceIsolationData of all that are registered."""
        policies = await self._require(await require_cluster(request, self._store))
        registered = await self._store.children(BROKERS) or [broker_id(self._lookup.advertised)]
        return json_answer([_of_broker(broker, policies) for broker in registered])

    async def broker(self, request: Request) -> Response:
        """Registered or not."""
        policies = await self._require(await require_cluster(request, self._store))
        return json_answer(_of_broker(request.path_params["broker"], policies))

    async def set(self, request: Request) -> Response:
        """`unloadBundles=false` (Apache 3), or the policy's unload_scope, leaves everything where it is served."""
        cluster, name = await require_cluster(request, self._store), request.path_params["policy"]
        try:
            policy = parse_policy(request.state.body)
        except InvalidPolicy as error:
            raise BadRequest(f"Invalid format of input policy data. policy: {name}; {error}") from error
        old = await self._change(cluster, name, policy)
        if request.state.query["unloadBundles"]:
            for namespace in to_unload(await self._namespaces(cluster), old, policy):
                await unload_namespace(self._lookup, NamespaceName.parse(namespace))
        return no_content()

    async def delete(self, request: Request) -> Response:
        """An absent policy may be removed too. No bundle is unloaded, as there."""
        await self._change(await require_cluster(request, self._store), request.path_params["policy"], None)
        return no_content()

    async def _require(self, cluster: str) -> IsolationPolicies:
        found = await self._store.get(isolation_path(cluster))
        if found is None:
            raise Refusal(404, f"NamespaceIsolationPolicies for cluster {cluster} does not exist")
        return decode_policies(found.value)

    async def _change(self, cluster: str, name: str, policy: IsolationPolicy | None) -> IsolationPolicy | None:
        """Stores a policy and returns the one before."""
        path = isolation_path(cluster)
        for _ in range(_ATTEMPTS_MAX):
            found = await self._store.get(path)
            policies = dict(decode_policies(found.value).by_name) if found is not None else {}
            old = policies.pop(name, None)
            if policy is not None:
                policies[name] = policy
            try:
                version = MUST_NOT_EXIST if found is None else found.stat.version
                await self._store.put(path, encode_policies(IsolationPolicies(policies)), version)
            except BadVersion:
                continue  # another writer was first: apply the change to its version
            return old
        raise Refusal(409, f"the isolation policies of {cluster} are changed by others all the time: try again")

    async def _namespaces(self, cluster: str) -> list[str]:
        """Those that are served in this cluster."""
        found: list[str] = []
        for tenant in await self._store.children("/admin/policies"):
            for name in await self._store.children(f"/admin/policies/{tenant}"):
                document = await self._namespace_policies.document(NamespaceName(tenant, name))
                if cluster in (document.get("replication_clusters") or ()):
                    found.append(f"{tenant}/{name}")
        return found


def _of_broker(broker: str, policies: IsolationPolicies) -> dict[str, Any]:
    """BrokerNamespaceIsolationData; the last one's name of several policies, as there. Expressions match its host."""
    of_it = {name: each for name, each in policies.by_name.items() if each.is_primary(broker) or each.is_secondary(broker)}
    data: dict[str, Any] = {"brokerName": broker}
    for name, policy in of_it.items():
        data |= {"policyName": name, "primary": policy.is_primary(broker)}
    return {"primary": False} | data | {"namespaceRegex": [each for policy in of_it.values() for each in policy.namespaces]}
