"""Routes for tenants (Apache: TenantsBase). Owns nothing; a tenant is TenantInfoImpl at /admin/policies/{tenant}."""

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....security.authorization.needs import Kind
from ....service.settings import BrokerSettings
from ....service.topic_name import NamespaceName
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.bodies import TenantInfo, plain
from ...rest.documents import Documents
from ...rest.endpoints import Access, Endpoint, Query
from .deletion import NamespaceDeletion

ROOT = "/admin/policies"
_TENANT = "/admin/v2/tenants/{tenant}"
_NAME = re.compile(r"[-=:.\w]+", re.ASCII)


def require_name(name: str, kind: str) -> str:
    """Refusal(412) for names that Apache's NamedEntity would refuse."""
    if not _NAME.fullmatch(name) or len(name) > 255:
        raise Refusal(412, f"{kind} name is not valid")
    return name


class TenantRoutes:
    """The handlers; one instance per server."""

    def __init__(self, settings: BrokerSettings, deletion: NamespaceDeletion, store: MetadataStore) -> None:
        self._settings, self._store = settings, store
        self._documents = Documents(store)
        self._deletion = deletion

    def routes(self) -> list[Endpoint]:
        def access(operation: str) -> Access:
            return Access(Kind.TENANT, operation)

        forced = (Query("force", bool, False, "Its namespaces and their topics too, where forceDeleteTenantAllowed is set."),)
        return [
            Endpoint("GET", "/admin/v2/tenants", self.names, access("LIST_TENANTS"), answer=list[str]),
            Endpoint("GET", _TENANT, self.get, access("GET_TENANT"), answer=TenantInfo),
            Endpoint("PUT", _TENANT, self.create, access("CREATE_TENANT"), body=TenantInfo, body_optional=True),
            Endpoint("POST", _TENANT, self.update, access("UPDATE_TENANT"), body=TenantInfo, body_optional=True),
            Endpoint("DELETE", _TENANT, self.delete, access("DELETE_TENANT"), query=forced),
        ]

    async def names(self, request: Request) -> Response:
        """The names of all tenants."""
        return json_answer(await self._store.children(ROOT))

    async def get(self, request: Request) -> Response:
        """Tells the admins of a tenant and the clusters in which it may have namespaces."""
        found = await self._documents.get(_path(request))
        if found is None:
            raise Refusal(404, "Tenant does not exist")
        return json_answer(found)

    async def create(self, request: Request) -> Response:
        """Make a tenant; maxTenants is the most there may be."""
        require_name(request.path_params["tenant"], "Tenant")
        document = await self._checked(request.state.body)
        limit = self._settings.max_tenants
        if limit > 0 and len(await self._store.children(ROOT)) >= limit:
            raise Refusal(412, "Exceed the maximum number of tenants")
        if not await self._documents.create(_path(request), document):
            raise Refusal(409, "Tenant already exist")
        return no_content()

    async def update(self, request: Request) -> Response:
        """Other admins, other clusters; a cluster in which it has namespaces stays."""
        tenant, document = request.path_params["tenant"], await self._checked(request.state.body)
        await self._check_clusters_left(tenant, document)

        def edit(before: Any) -> Any:
            if before is None:
                raise Refusal(404, f"Tenant {tenant} not found")
            return before | document

        await self._documents.change(_path(request), edit)
        return no_content()

    async def delete(self, request: Request) -> Response:
        """A tenant without namespaces, unless it is forced."""
        tenant, is_forced = request.path_params["tenant"], request.state.query["force"]
        if is_forced and not self._settings.force_delete_tenant_allowed:
            raise Refusal(405, "Broker doesn't allow forced deletion of tenants")
        if not await self._store.exists(_path(request)):
            raise Refusal(404, "Tenant doesn't exist")
        namespaces = await self._store.children(_path(request))
        if namespaces and not is_forced:
            raise Refusal(409, "The tenant still has active namespaces")
        for name in namespaces:
            await self._deletion.delete(NamespaceName(tenant, name), is_forced=True)
        for root in (ROOT, "/admin/local-policies", "/admin/partitioned-topics", "/managed-ledgers"):
            await self._documents.delete_tree(f"{root}/{tenant}")
        return no_content()

    async def _checked(self, info: TenantInfo | None) -> Any:
        """Checks a tenant in the order in which Apache checks it. Refusal(412)."""
        if info is None:
            raise Refusal(412, "TenantInfo is null")
        roles, clusters = info.admin_roles or [], info.allowed_clusters
        if any(role != role.strip() for role in roles):
            raise Refusal(412, "AdminRoles contains whitespace in the beginning or end.")
        if any(not role for role in roles):
            raise Refusal(412, "AdminRoles contains empty value")
        if clusters is None:
            raise Refusal(412, "Clusters cannot be null")
        if not clusters or not all(cluster.strip() for cluster in clusters):
            raise Refusal(412, "Clusters cannot be empty or blank")
        if set(clusters) - {*await self._store.children("/admin/clusters"), "global"}:
            raise Refusal(412, "Clusters do not exist")
        unique = TenantInfo(list(dict.fromkeys(roles)), list(dict.fromkeys(clusters)))
        return plain(unique)

    async def _check_clusters_left(self, tenant: str, document: Any) -> None:
        before = await self._documents.get(f"{ROOT}/{tenant}") or {}
        gone = set(before.get("allowedClusters") or ()) - set(document["allowedClusters"]) - {"global"}
        for name in await self._store.children(f"{ROOT}/{tenant}") if gone else ():
            policies = await self._documents.get(f"{ROOT}/{tenant}/{name}") or {}
            if gone & set(policies.get("replication_clusters") or ()):
                raise Refusal(409, f"Clusters [{', '.join(sorted(gone))}] are in use: namespace {tenant}/{name} is there")


def _path(request: Request) -> str:
    return f"{ROOT}/{require_name(request.path_params['tenant'], 'Tenant')}"
