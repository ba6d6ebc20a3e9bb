"""Routes for namespaces as such: list, make, delete, their topics, their permissions (Apache: Namespaces, NamespacesBase).

Single policies are `namespace_policies`'. Statuses and reasons are Apache's.
"""

from enum import StrEnum
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.catalogue.namespaces import bundles as even_bundles
from ....service.catalogue.namespaces import default_policies, policies_path
from ....service.lookup import Lookup
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.settings import BrokerSettings
from ....service.topic_name import NamespaceName
from ...rest.answers import BadRequest, Refusal, json_answer, no_content
from ...rest.bodies import BundlesData
from ...rest.documents import Documents
from ...rest.elsewhere import redirect
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import full_names, namespace_of
from .bundles import bundles_data, bundles_of
from .deletion import NamespaceDeletion
from .policy_table import check_document
from .tenants import ROOT, require_name

_NAMESPACES = "/admin/v2/namespaces/{tenant}"
_NAMESPACE = _NAMESPACES + "/{namespace}"
BUNDLES_MAX = 1 << 16
"""Bundles of a new namespace, limited by the size of a node in ZooKeeper. Apache takes four thousand million, and dies of it.
"""


class Mode(StrEnum):
    """CommandGetTopicsOfNamespace.Mode."""

    PERSISTENT = "PERSISTENT"
    NON_PERSISTENT = "NON_PERSISTENT"
    ALL = "ALL"


class NamespaceRoutes:
    """The handlers; one instance per server."""

    def __init__(
        self,
        catalogue: Catalogue,
        lookup: Lookup,
        namespace_policies: NamespacePolicies,
        settings: BrokerSettings,
        deletion: NamespaceDeletion,
        store: MetadataStore,
    ) -> None:
        self._catalogue, self._lookup, self._namespace_policies = catalogue, lookup, namespace_policies
        self._settings, self._store, self._documents = settings, store, Documents(store)
        self._deletion = deletion

    def routes(self) -> list[Endpoint]:
        def tenant(operation: str) -> Access:
            return Access(Kind.TENANT, operation)

        policies = Access(Kind.NAMESPACE_POLICY, "ALL")
        forced = (Query("force", bool, False, "Its topics too, where forceDeleteNamespaceAllowed is set."),)
        which = (Query("mode", Mode), Query("includeSystemTopic", bool, False))
        topics = Access(Kind.NAMESPACE, "GET_TOPICS")
        create = Endpoint(
            "PUT", _NAMESPACE, self.create, tenant("CREATE_NAMESPACE"), body=dict[str, Any] | None, body_optional=True
        )
        return [
            Endpoint("GET", _NAMESPACES, self.names, tenant("LIST_NAMESPACES"), answer=list[str]),
            Endpoint("GET", _NAMESPACE, self.get, policies, answer=dict[str, Any]),
            create,
            Endpoint("DELETE", _NAMESPACE, self.delete, tenant("DELETE_NAMESPACE"), forced),
            Endpoint("DELETE", _NAMESPACE + "/{bundle}", self.delete_bundle, tenant("DELETE_NAMESPACE"), forced),
            Endpoint("GET", _NAMESPACE + "/topics", self.topics, topics, which, answer=list[str]),
        ]

    async def names(self, request: Request) -> Response:
        """The namespaces of a tenant."""
        tenant = request.path_params["tenant"]
        if not await self._store.exists(f"{ROOT}/{tenant}"):
            raise Refusal(404, "Tenant not found")
        return json_answer([f"{tenant}/{name}" for name in await self._store.children(f"{ROOT}/{tenant}")])

    async def get(self, request: Request) -> Response:
        """All its policies; its bundles as they are cut now."""
        namespace = namespace_of(request)
        document = await self._namespace_policies.document(namespace)
        return json_answer(document | {"bundles": bundles_data(await bundles_of(self._lookup, namespace))})

    async def create(self, request: Request) -> Response:
        """Make a namespace, with policies if some are given; maxNamespacesPerTenant is the most of a tenant."""
        given = request.state.body or {}
        namespace = self._new_name(request)
        tenant = await self._documents.get(f"{ROOT}/{namespace.tenant}")
        if tenant is None:
            raise Refusal(404, "Tenant does not exist")
        document = self._document(given)
        self._check_clusters(document["replication_clusters"], namespace.tenant, tenant.get("allowedClusters") or [])
        limit = self._settings.max_namespaces_per_tenant
        if limit > 0 and len(await self._store.children(f"{ROOT}/{namespace.tenant}")) >= limit:
            raise Refusal(412, f"Exceed the maximum number of namespace in tenant :{namespace.tenant}")
        if not await self._documents.create(policies_path(namespace), document):
            raise Refusal(409, "Namespace already exists")
        local = {"bundles": document["bundles"], "migrated": False}
        await self._documents.create(f"/admin/local-policies/{namespace}", local)
        return no_content()

    async def delete(self, request: Request) -> Response:
        """A namespace without topics, unless it is forced."""
        is_forced = request.state.query["force"]
        if is_forced and not self._settings.force_delete_namespace_allowed:
            raise Refusal(405, "Broker doesn't allow forced deletion of namespaces")
        await self._deletion.delete(namespace_of(request), is_forced=is_forced)
        return no_content()

    async def delete_bundle(self, request: Request) -> Response:
        """The topics of one bundle, which is there again as soon as there is another topic in it."""
        is_forced = request.state.query["force"]
        if is_forced and not self._settings.force_delete_namespace_allowed:
            raise Refusal(405, "Broker doesn't allow forced deletion of namespaces")
        namespace, text = namespace_of(request), request.path_params["bundle"]
        await self._catalogue.namespaces.require(namespace)
        elsewhere = await self._deletion.delete_bundle(namespace, text, is_forced=is_forced)
        return no_content() if elsewhere is None else redirect(request, elsewhere.address)

    async def topics(self, request: Request) -> Response:
        """Tells the topics of a namespace, partitions one by one; non-persistent ones that are loaded here."""
        query = request.state.query
        topics = await self._catalogue.list_topics(namespace_of(request), system_topics=query["includeSystemTopic"])
        found = [] if query["mode"] is Mode.NON_PERSISTENT else await full_names(topics)
        if query["mode"] in (Mode.NON_PERSISTENT, Mode.ALL):
            found += await full_names(await self._catalogue.list_non_persistent(namespace_of(request)))
        return json_answer(found)

    def _new_name(self, request: Request) -> NamespaceName:
        tenant, name = request.path_params["tenant"], request.path_params["namespace"]
        return NamespaceName(require_name(tenant, "Tenant"), require_name(name, "Namespace"))

    def _document(self, given: dict[str, Any]) -> dict[str, Any]:
        settings = self._settings
        given = {member: value for member, value in given.items() if value != ""}  # no name of an enum: null for Jackson
        policies = check_document(given, settings.cluster_name)
        defaults = default_policies(settings.cluster_name, 1)
        cut = _bundles(given.get("bundles"), settings.default_number_of_namespace_bundles)
        clusters = given.get("replication_clusters") or [settings.cluster_name]
        if not isinstance(clusters, list) or not all(isinstance(each, str) for each in clusters):
            raise BadRequest("replication_clusters: expected a list of names")
        return defaults | policies | {"bundles": cut, "replication_clusters": clusters}

    def _check_clusters(self, clusters: list[str], tenant: str, allowed: list[str]) -> None:
        for cluster in clusters:
            if cluster not in allowed:
                reason = f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant [{tenant}]"
                raise Refusal(403, reason)
            if cluster != self._settings.cluster_name:
                raise Refusal(501, f"Replication to another cluster ({cluster}) is not supported: geo-replication is missing")


def _bundles(given: Any, default_count: int) -> dict[str, Any]:
    """BundlesData; boundaries count beside their number alone."""
    try:
        data = msgspec.convert(given or {}, BundlesData)
        edges = sorted({int(edge, 16) for edge in data.boundaries or ()})
    except (msgspec.ValidationError, ValueError) as error:
        raise Refusal(412, f"Invalid bundles: {error}") from error
    if data.num_bundles <= 0:
        return even_bundles(default_count)
    if data.num_bundles > BUNDLES_MAX:
        raise Refusal(412, f"Invalid number of bundles. Number of bundles has to be in the range of (0, {BUNDLES_MAX}].")
    if not data.boundaries:
        return even_bundles(data.num_bundles)
    if len(edges) != data.num_bundles + 1 or edges[0] != 0 or edges[-1] != 0xFFFFFFFF:
        raise Refusal(412, "Invalid bundles: boundaries are one more than bundles, from 0x00000000 to 0xffffffff")
    return {"boundaries": [f"0x{edge:08x}" for edge in edges], "numBundles": data.num_bundles}
