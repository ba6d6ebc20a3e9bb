"""Routes for clusters and their peers (Apache: ClustersBase). Owns nothing.

A cluster is ClusterDataImpl at /admin/clusters/{name}. Failure domains are `affinity`'s, isolation policies `isolation`'s.
"""

from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....security.authorization.needs import Kind
from ...rest.answers import Refusal, json_answer, no_content, nothing
from ...rest.bodies import ClusterData, ClusterUrl, plain
from ...rest.documents import Documents
from ...rest.endpoints import AUTHENTICATED, Access, Endpoint, Text
from ..namespaces.tenants import ROOT as POLICIES
from ..namespaces.tenants import require_name

ROOT = "/admin/clusters"
_CLUSTER = "/admin/v2/clusters/{cluster}"
_URLS = {
    "service_url": (("http",), "Illegal service url, example: http://pulsar.example.com:8080"),
    "service_url_tls": (("https",), "Illegal service tls url, example: https://pulsar.example.com:8443"),
    "broker_service_url": (("pulsar",), "Illegal broker service url, example: pulsar://pulsar.example.com:6650"),
    "broker_service_url_tls": (
        ("pulsar+ssl",),
        "Illegal broker service tls url, example: pulsar+ssl://pulsar.example.com:6651",
    ),
    "proxy_service_url": (("pulsar", "pulsar+ssl"), "Illegal proxy service url, example: pulsar+ssl://proxy.example.com:4443"),
}


class ClusterRoutes:
    """The handlers; one instance per server."""

    def __init__(self, store: MetadataStore) -> None:
        self._store, self._documents = store, Documents(store)

    def routes(self) -> list[Endpoint]:
        def access(operation: str) -> Access:
            return Access(Kind.CLUSTER, operation)

        peers = _CLUSTER + "/peers"
        return [
            Endpoint("GET", "/admin/v2/clusters", self.names, AUTHENTICATED, answer=list[str]),
            Endpoint("GET", _CLUSTER, self.get, access("GET_CLUSTER"), answer=ClusterData),
            Endpoint(
                "PUT",
                _CLUSTER,
                self.create,
                access("CREATE_CLUSTER"),
                body=ClusterData,
                body_optional=True,
                answer=Text.NOTHING,
            ),
            Endpoint("POST", _CLUSTER, self.update, access("UPDATE_CLUSTER"), body=ClusterData, answer=Text.NOTHING),
            Endpoint("DELETE", _CLUSTER, self.delete, access("DELETE_CLUSTER")),
            Endpoint("GET", peers, self.peers, access("GET_PEER_CLUSTER"), answer=list[str]),
            Endpoint("POST", peers, self.set_peers, access("UPDATE_PEER_CLUSTER"), body=list[str] | None, body_optional=True),
            Endpoint("GET", _CLUSTER + "/migrate", self.migration, access("GET_CLUSTER_MIGRATION"), answer=ClusterUrl),
        ]

    async def names(self, request: Request) -> Response:
        """The names of all clusters, `global` apart."""
        return json_answer([name for name in await self._store.children(ROOT) if name != "global"])

    async def get(self, request: Request) -> Response:
        """Tells the addresses of a cluster."""
        return json_answer(await self._require(request))

    async def create(self, request: Request) -> Response:
        """Make a cluster known."""
        if request.state.body is None:
            raise Refusal(400, "cluster data is required")
        document = _checked(request.state.body)
        require_name(request.path_params["cluster"], "Cluster")
        if not await self._documents.create(_path(request), document):
            raise Refusal(409, "Cluster already exists")
        return nothing()

    async def update(self, request: Request) -> Response:
        """Other addresses; its peers stay as they are."""
        document = _checked(request.state.body)

        def edit(before: Any) -> Any:
            kept = {"peerClusterNames": before["peerClusterNames"]} if _existing(before).get("peerClusterNames") else {}
            return document | kept

        await self._documents.change(_path(request), edit)
        return nothing()

    async def delete(self, request: Request) -> Response:
        """A cluster in which no namespace is. Apache looks for namespaces of its first version alone."""
        await self._require(request)
        cluster = request.path_params["cluster"]
        for tenant in await self._store.children(POLICIES):
            for name in await self._store.children(f"{POLICIES}/{tenant}"):
                policies = await self._documents.get(f"{POLICIES}/{tenant}/{name}") or {}
                if cluster in (policies.get("replication_clusters") or ()):
                    raise Refusal(412, "Cluster not empty")
        await self._documents.delete_tree(_path(request))
        return no_content()

    async def peers(self, request: Request) -> Response:
        """Clusters whose topics it may serve; 204 when none were ever set."""
        peers = (await self._require(request)).get("peerClusterNames")
        return no_content() if peers is None else json_answer(peers)

    async def set_peers(self, request: Request) -> Response:
        """Replaces the peers of a cluster; without a body, or with null, it has none from then on."""
        cluster, given = request.path_params["cluster"], request.state.body
        peers = None if given is None else list(dict.fromkeys(given))
        known = await self._store.children(ROOT)
        for peer in peers or ():
            if peer.lower() == cluster.lower():
                raise Refusal(412, f"{peer} itself can't be part of peer-list")
            if peer not in known:
                raise Refusal(412, f"Peer cluster {peer} does not exist")
        await self._documents.change(_path(request), lambda before: _existing(before) | {"peerClusterNames": peers})
        return no_content()

    async def migration(self, request: Request) -> Response:
        """Tells the target of a migration; clusters are not migrated here, so that the answer is always 404."""
        await self._require(request)
        raise Refusal(404, "Cluster does not exist")

    async def _require(self, request: Request) -> dict[str, Any]:
        return _existing(await self._documents.get(_path(request)))


def _existing(document: Any) -> dict[str, Any]:
    if document is None:
        raise Refusal(404, "Cluster does not exist")
    found: dict[str, Any] = document
    return found


def _checked(data: ClusterData) -> Any:
    for member, (schemes, reason) in _URLS.items():
        value = getattr(data, member)
        if value and not _are_urls(value, schemes):
            raise Refusal(400, reason)
    if (data.proxy_service_url is None) != (data.proxy_protocol is None):
        raise Refusal(400, "proxyServiceUrl and proxyProtocol go together: set both or neither")
    return plain(data)


def _are_urls(text: str, schemes: tuple[str, ...]) -> bool:
    """One with a scheme, and after commas more, with it or without."""
    first, *more = (each.strip() for each in text.split(","))
    urls = [first, *(each if "://" in each else f"{schemes[0]}://{each}" for each in more)]
    try:
        found = [urlsplit(url) for url in urls]
        return all(url.scheme in schemes and url.hostname and (url.port is None or url.port > 0) for url in found)
    except ValueError:
        return False


def _path(request: Request) -> str:
    return f"{ROOT}/{require_name(request.path_params['cluster'], 'Cluster')}"
