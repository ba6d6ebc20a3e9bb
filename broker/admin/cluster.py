"""Routes about the cluster: health, brokers, clusters, tenants, namespaces, as they stand in metadata. Reading only.

Also what is not there: schemas.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from metadata.store import MetadataStore

from ..service.broker_service import BrokerService
from ..service.load.loads import BrokerLoad, load_fields
from ..service.lookups import BROKERS, broker_id
from .answers import json_answer, refusal, text_answer
from .names import namespace_of


class ClusterRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService, store: MetadataStore, version: str) -> None:
        self._service = service
        self._store = store
        self._version = version

    def routes(self) -> list[BaseRoute]:
        table: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = [
            ("/status.html", self.status),
            ("/admin/v2/brokers", self.brokers),
            ("/admin/v2/brokers/health", self.ok),
            ("/admin/v2/brokers/ready", self.ok),
            ("/admin/v2/brokers/version", self.version),
            ("/admin/v2/brokers/leaderBroker", self.leader),
            ("/admin/v2/brokers/{cluster}", self.brokers),
            ("/admin/v2/broker-stats/load-report", self.load_report),
            ("/admin/v2/clusters", self.clusters),
            ("/admin/v2/clusters/{cluster}", self.cluster),
            ("/admin/v2/tenants", self.tenants),
            ("/admin/v2/tenants/{tenant}", self.tenant),
            ("/admin/v2/namespaces/{tenant}", self.namespaces),
            ("/admin/v2/namespaces/{tenant}/{namespace}", self.policies),
            ("/admin/v2/namespaces/{tenant}/{namespace}/topics", self.topics),
            ("/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema", self.schema),
            ("/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}", self.schema),
        ]
        return [Route(path, handler, methods=["GET"]) for path, handler in table]

    async def status(self, request: Request) -> Response:
        return PlainTextResponse("OK")

    async def ok(self, request: Request) -> Response:
        return text_answer("ok")

    async def version(self, request: Request) -> Response:
        return text_answer(self._version)

    async def brokers(self, request: Request) -> Response:
        """By their ids; a standalone is not registered anywhere."""
        return json_answer(await self._store.children(BROKERS) or [broker_id(self._service.advertised)])

    async def leader(self, request: Request) -> Response:
        """LeaderBroker; a standalone is its own."""
        if self._service.load is None:
            url = self._service.advertised.http_url
            return json_answer({"serviceUrl": url, "brokerId": url.removeprefix("http://")})
        leader = self._service.load.leader()
        return json_answer(leader) if leader else refusal(404, "Couldn't find leader broker")

    async def load_report(self, request: Request) -> Response:
        """What the load manager was told last, LocalBrokerData's changing half."""
        load = self._service.load
        return json_answer(load_fields(BrokerLoad() if load is None else load.reported()))

    async def clusters(self, request: Request) -> Response:
        return json_answer([name for name in await self._store.children("/admin/clusters") if name != "global"])

    async def cluster(self, request: Request) -> Response:
        return await self._stored(f"/admin/clusters/{request.path_params['cluster']}", "Cluster does not exist")

    async def tenant(self, request: Request) -> Response:
        return await self._stored(f"/admin/policies/{request.path_params['tenant']}", "Tenant does not exist")

    async def policies(self, request: Request) -> Response:
        return await self._stored(f"/admin/policies/{namespace_of(request)}", "Namespace does not exist")

    async def _stored(self, path: str, missing: str) -> Response:
        """The JSON that stands in metadata, as it stands there."""
        found = await self._store.get(path)
        return refusal(404, missing) if found is None else Response(found.value, media_type="application/json")

    async def tenants(self, request: Request) -> Response:
        return json_answer(await self._store.children("/admin/policies"))

    async def namespaces(self, request: Request) -> Response:
        tenant = request.path_params["tenant"]
        if not await self._store.exists(f"/admin/policies/{tenant}"):
            return refusal(404, "Tenant not found")
        return json_answer([f"{tenant}/{name}" for name in await self._store.children(f"/admin/policies/{tenant}")])

    async def topics(self, request: Request) -> Response:
        """`mode` may leave out what is persistent; what is not persistent does not exist here yet."""
        topics = await self._service.list_topics(namespace_of(request))
        hidden = request.query_params.get("mode") == "NON_PERSISTENT"
        return json_answer([] if hidden else [str(topic) for topic in topics])

    async def schema(self, request: Request) -> Response:
        return refusal(404, "Schema not found")
