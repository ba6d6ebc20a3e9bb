"""Routes for the settings of a namespace beside the policies of the table: backlog quotas, properties, clusters, bookie groups.

(Apache: Namespaces.) Statuses and reasons are Apache's.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....policies.members import parse_quota, parse_retention
from ....policies.policies import QuotaType
from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.policies.namespace_policies import NamespacePolicies
from ....service.settings import BrokerSettings
from ...rest.answers import Refusal, json_answer, no_content, nothing, text_answer
from ...rest.bodies import BacklogQuota, BookieAffinity, plain
from ...rest.endpoints import SUPER_USER, TENANT_ADMIN, Access, Endpoint, Query, Text
from ...rest.names import namespace_of
from ..topic_policies.bodies import is_conflict
from .policies import NAMESPACE, Document, change
from .policy_table import REPLICATION, stored_quota

_AFFINITY = "placement of ledgers by groups of bookies is missing"


class NamespaceSettingRoutes:
    """The handlers; one instance per server."""

    def __init__(
        self, catalogue: Catalogue, namespace_policies: NamespacePolicies, settings: BrokerSettings, store: MetadataStore
    ) -> None:
        self._catalogue, self._namespace_policies, self._settings, self._store = catalogue, namespace_policies, settings, store

    def routes(self) -> list[Endpoint]:
        def policy(name: str, *, writes: bool = False) -> Access:
            return Access(Kind.NAMESPACE_POLICY, name, writes)

        kind = (Query("backlogQuotaType", QuotaType, QuotaType.DESTINATION_STORAGE),)
        quota, affinity = NAMESPACE + "/backlogQuota", NAMESPACE + "/persistence/bookieAffinity"
        properties, one = NAMESPACE + "/properties", NAMESPACE + "/property/{key}"
        replication, allowed = NAMESPACE + "/replication", NAMESPACE + "/allowedClusters"
        return [
            Endpoint("GET", quota + "Map", self.quotas, policy("BACKLOG"), answer=dict[str, BacklogQuota]),
            Endpoint("POST", quota, self.set_quota, policy("BACKLOG", writes=True), kind, BacklogQuota),
            Endpoint("DELETE", quota, self.remove_quota, policy("BACKLOG", writes=True), kind),
            Endpoint("GET", properties, self.properties, TENANT_ADMIN, answer=dict[str, str]),
            Endpoint("PUT", properties, self.set_properties, TENANT_ADMIN, body=dict[str, str]),
            Endpoint("DELETE", properties, self.clear_properties, TENANT_ADMIN),
            Endpoint("GET", one, self.property, TENANT_ADMIN, answer=Text.LABELLED_JSON),
            Endpoint("DELETE", one, self.remove_property, TENANT_ADMIN, answer=Text.LABELLED_JSON),
            Endpoint("PUT", one + "/{value}", self.set_property, TENANT_ADMIN),
            Endpoint("GET", replication, self.clusters, policy("REPLICATION"), answer=list[str]),
            Endpoint(
                "POST", replication, self.set_clusters, policy("REPLICATION", writes=True), body=list[str], answer=Text.NOTHING
            ),
            Endpoint("GET", allowed, self.allowed, policy("ALLOW_CLUSTERS"), answer=list[str]),
            Endpoint(
                "POST", allowed, self.set_allowed, policy("ALLOW_CLUSTERS", writes=True), body=list[str], answer=Text.NOTHING
            ),
            Endpoint("GET", affinity, self.affinity, SUPER_USER, answer=BookieAffinity),
            Endpoint("POST", affinity, self.set_affinity, SUPER_USER, body=BookieAffinity),
            Endpoint("DELETE", affinity, self.remove_affinity, SUPER_USER),
        ]

    # ---- Backlog quotas

    async def quotas(self, request: Request) -> Response:
        """Backlog quotas, by destination_storage and message_age."""
        return json_answer((await self._document(request)).get("backlog_quota_map") or {})

    async def set_quota(self, request: Request) -> Response:
        """Sets the size or age that the backlog of a topic may have, and the action beyond it."""
        given: BacklogQuota = request.state.body
        kind: QuotaType = request.state.query["backlogQuotaType"]
        if given.policy is None:
            reason = f"Set namespace[{namespace_of(request)}] backlog quota failed because the data validation failed."
            raise Refusal(400, f"{reason} the attribute policy cannot be null")
        value = stored_quota(_given(given))

        def edit(document: Document) -> None:
            retention = document.get("retention_policies")
            is_size = kind is QuotaType.DESTINATION_STORAGE
            if is_size and retention is not None and is_conflict(parse_quota(value), parse_retention(retention)):
                reason = "Backlog Quota exceeds configured retention quota for namespace."
                raise Refusal(412, f"{reason} Please increase retention quota and retry")
            document["backlog_quota_map"] = (document.get("backlog_quota_map") or {}) | {kind.value: value}

        return await change(self._namespace_policies, request, edit)

    async def remove_quota(self, request: Request) -> Response:
        """The broker's settings hold again."""
        kind = request.state.query["backlogQuotaType"]

        def edit(document: Document) -> None:
            quotas = document.get("backlog_quota_map") or {}
            document["backlog_quota_map"] = {name: value for name, value in quotas.items() if name != kind}

        return await change(self._namespace_policies, request, edit)

    # ---- Properties

    async def properties(self, request: Request) -> Response:
        """Tells the properties that operators have noted for the namespace."""
        return json_answer((await self._document(request)).get("properties") or {})

    async def set_properties(self, request: Request) -> Response:
        """Beside those that there are."""
        return await self._add(request, request.state.body)

    async def set_property(self, request: Request) -> Response:
        """One of them."""
        return await self._add(request, {request.path_params["key"]: request.path_params["value"]})

    async def clear_properties(self, request: Request) -> Response:
        """All of them."""
        return await change(self._namespace_policies, request, lambda document: document.update(properties={}))

    async def property(self, request: Request) -> Response:
        """The value as bare text; 204 where there is none."""
        found = ((await self._document(request)).get("properties") or {}).get(request.path_params["key"])
        return no_content() if found is None else text_answer(found)

    async def remove_property(self, request: Request) -> Response:
        """The value that it had as bare text; 204 where there is none."""
        had: list[str] = []

        def edit(document: Document) -> None:
            properties = dict(document.get("properties") or {})
            had[:] = [properties.pop(key) for key in [request.path_params["key"]] if key in properties]
            document["properties"] = properties

        await change(self._namespace_policies, request, edit)
        return text_answer(had[0]) if had else no_content()

    async def _add(self, request: Request, more: dict[str, str]) -> Response:
        def edit(document: Document) -> None:
            document["properties"] = (document.get("properties") or {}) | more

        return await change(self._namespace_policies, request, edit)

    # ---- Clusters

    async def clusters(self, request: Request) -> Response:
        """Tells the clusters of the namespace."""
        return json_answer((await self._document(request)).get("replication_clusters") or [])

    async def set_clusters(self, request: Request) -> Response:
        """This cluster alone; 501 for others."""
        clusters: list[str] = list(dict.fromkeys(request.state.body))
        if not clusters:
            raise Refusal(412, "ClusterIds should not be null or empty")
        if "global" in clusters:
            raise Refusal(412, "Cannot specify global in the list of replication clusters")
        await self._require_alone(request, clusters, "Replication")
        await change(self._namespace_policies, request, lambda document: document.update(replication_clusters=clusters))
        return nothing()

    async def allowed(self, request: Request) -> Response:
        """Tells the clusters in which topics of the namespace may be; none: those of the namespace."""
        return json_answer((await self._document(request)).get("allowed_clusters") or [])

    async def set_allowed(self, request: Request) -> Response:
        """This cluster alone; 501 for others."""
        clusters: list[str] = list(dict.fromkeys(request.state.body))
        await self._require_alone(request, clusters, "allowedClusters")
        await change(self._namespace_policies, request, lambda document: document.update(allowed_clusters=clusters))
        return nothing()

    async def _require_alone(self, request: Request, clusters: list[str], what: str) -> None:
        await self._catalogue.namespaces.require(namespace_of(request))
        known = await self._store.children("/admin/clusters")
        for cluster in clusters:
            if cluster not in known:
                raise Refusal(403, f"Invalid cluster id: {cluster}")
        if clusters and clusters != [self._settings.cluster_name]:
            raise Refusal(501, f"{what} to other clusters is not supported: {REPLICATION}")

    # ---- Groups of bookies

    async def affinity(self, request: Request) -> Response:
        """204: in none."""
        await self._catalogue.namespaces.require(namespace_of(request))
        return no_content()

    async def set_affinity(self, request: Request) -> Response:
        """Sets the bookie group: not supported."""
        await self._catalogue.namespaces.require(namespace_of(request))
        raise Refusal(501, f"bookieAffinity is not supported: {_AFFINITY}")

    async def remove_affinity(self, request: Request) -> Response:
        """There is nothing to be removed."""
        await self._catalogue.namespaces.require(namespace_of(request))
        return no_content()

    async def _document(self, request: Request) -> Document:
        return await self._namespace_policies.document(namespace_of(request))


def _given(quota: BacklogQuota) -> dict[str, Any]:
    found = plain(quota)
    assert isinstance(found, dict)
    return found
