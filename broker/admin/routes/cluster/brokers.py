"""Routes about brokers: their list, their bundles, this broker's health and configuration (Apache: BrokersBase)."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from metadata.store import MetadataStore
from ports.settings import shown_value

from ....security.authorization.needs import Kind
from ....service.addresses import BROKERS, Advertised, broker_id
from ....service.broker_service import BrokerService
from ....service.ownership.bundles import OWNERS
from ....service.topic_name import TopicName
from ...rest.answers import Refusal, json_answer, no_content, text_answer
from ...rest.documents import Documents
from ...rest.elsewhere import redirect
from ...rest.endpoints import ANYBODY, AUTHENTICATED, SUPER_USER, Access, Endpoint, Query, Text
from ..namespaces.bundles import bundles_of

_BROKERS = "/admin/v2/brokers"
_CONFIGURATION = _BROKERS + "/configuration"
PROCESSES = "interpulse.processes"
"""Key in the scope of a request to a port that several processes share: the answer with their list."""
_OWNED = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


class BrokerRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService, store: MetadataStore, version: str) -> None:
        self._service, self._store, self._version = service, store, version
        self._documents = Documents(store)

    def routes(self) -> list[Endpoint]:
        def access(operation: str) -> Access:
            return Access(Kind.BROKER, operation)

        owned, one = (
            _BROKERS + "/{cluster}/{broker}/ownedNamespaces",
            Query("brokerId", description="Another broker, by its id."),
        )
        return [
            Endpoint("GET", "/status.html", self.status, ANYBODY, answer=Text.TEXT),
            Endpoint("GET", _BROKERS, self.names, access("LIST_BROKERS"), answer=list[str]),
            Endpoint("GET", _BROKERS + "/{cluster}", self.names, access("LIST_BROKERS"), answer=list[str]),
            Endpoint("GET", owned, self.owned, access("LIST_OWNED_NAMESPACES"), answer=dict[str, Any]),
            Endpoint("GET", _BROKERS + "/leaderBroker", self.leader, access("GET_LEADER_BROKER"), answer=dict[str, str]),
            Endpoint("GET", _BROKERS + "/health", self.health, access("HEALTH_CHECK"), (one,), answer=Text.LABELLED_JSON),
            Endpoint("GET", _BROKERS + "/ready", self.ready, AUTHENTICATED, answer=Text.LABELLED_JSON),
            Endpoint("GET", _BROKERS + "/version", self.version, AUTHENTICATED, answer=Text.LABELLED_JSON),
            Endpoint("GET", _BROKERS + "/backlog-quota-check", self.check_backlogs, access("CHECK_BACKLOG_QUOTA")),
            Endpoint("GET", _BROKERS + "/processes", self.processes, SUPER_USER, answer=list[dict[str, Any]]),
            *self._configuration_routes(access),
        ]

    def _configuration_routes(self, access: Callable[[str], Access]) -> list[Endpoint]:
        one = _CONFIGURATION + "/{key}"
        texts = dict[str, str]
        internal, listed = access("GET_INTERNAL_CONFIGURATION_DATA"), access("LIST_DYNAMIC_CONFIGURATIONS")
        runtime, update = access("LIST_RUNTIME_CONFIGURATIONS"), access("UPDATE_DYNAMIC_CONFIGURATION")
        return [
            Endpoint("GET", _BROKERS + "/internal-configuration", self.internal, internal, answer=texts),
            Endpoint("GET", _CONFIGURATION, self.dynamic_names, listed, answer=list[str]),
            Endpoint("GET", _CONFIGURATION + "/values", self.dynamic_values, listed, answer=texts),
            Endpoint("GET", _CONFIGURATION + "/runtime", self.runtime, runtime, answer=texts),
            Endpoint("POST", one + "/{value:path}", self.change_configuration, update),
            Endpoint("DELETE", one, self.remove_configuration, access("DELETE_DYNAMIC_CONFIGURATION")),
        ]

    # ---- Which there are

    async def status(self, request: Request) -> Response:
        """Tells load balancers OK, or 404 while the file of statusFilePath is missing (VipStatus)."""
        if not self._is_in_service():
            raise HTTPException(404)
        return PlainTextResponse("OK")

    def _is_in_service(self) -> bool:
        path = self._service.settings.status_file_path
        return path is None or Path(path).is_file()

    async def names(self, request: Request) -> Response:
        """The ids of the brokers that are registered, which a standalone is not. Any cluster will do, as there."""
        return json_answer(await self._ids())

    async def owned(self, request: Request) -> Response:
        """NamespaceOwnershipStatus of each bundle that a broker serves."""
        broker = request.path_params["broker"]
        if broker not in await self._ids():
            raise Refusal(404, f"Broker id '{broker}' not found in available brokers.")
        if not await self._store.children(BROKERS):
            return json_answer(dict.fromkeys(await self._loaded(), _OWNED))
        return json_answer(dict.fromkeys(await self._owned_by(broker), _OWNED))

    async def leader(self, request: Request) -> Response:
        """LeaderBroker; a standalone is its own."""
        if self._service.load.driver is None:
            url = self._service.lookup.advertised.http_url
            return json_answer({"serviceUrl": url, "brokerId": broker_id(self._service.lookup.advertised)})
        leader = self._service.load.driver.leader()
        if not leader:
            raise Refusal(404, "Couldn't find leader broker")
        return json_answer(leader)

    async def processes(self, request: Request) -> Response:
        """Ours alone: the processes behind the port in front (docs/more-cores.md), with phase, pid and starts of each. None on
        a port of one process."""
        gather: Callable[[], Awaitable[Response]] | None = request.scope.get(PROCESSES)
        return json_answer([]) if gather is None else await gather()

    async def _ids(self) -> list[str]:
        return await self._store.children(BROKERS) or [broker_id(self._service.lookup.advertised)]

    async def _owned_by(self, broker: str) -> list[str]:
        """Returns the bundles whose nodes name this broker."""
        found = []
        for tenant in await self._store.children(OWNERS):
            for name in await self._store.children(f"{OWNERS}/{tenant}"):
                namespace = f"{tenant}/{name}"
                for bundle in await self._store.children(f"{OWNERS}/{namespace}"):
                    data = await self._documents.get(f"{OWNERS}/{namespace}/{bundle}") or {}
                    if _host(data) == broker:
                        found.append(f"{namespace}/{bundle}")
        return found

    async def _loaded(self) -> list[str]:
        """Returns the bundles of a standalone in which topics are loaded."""
        found: dict[str, None] = {}
        for name in self._service.catalogue.loaded_topics:
            topic = TopicName.parse(name)
            found[str((await bundles_of(self._service.lookup, topic.namespace)).of(topic))] = None
        return list(found)

    # ---- Whether it is well

    async def health(self, request: Request) -> Response:
        """A message is published to the broker's heartbeat topic and read back (Apache: internalRunHealthCheck)."""
        broker = request.state.query["brokerId"]
        if broker and broker != broker_id(self._service.lookup.advertised):
            data = await self._documents.get(f"{BROKERS}/{broker}")
            if data is None:
                raise Refusal(404, f"Broker id '{broker}' not found in available brokers.")
            return redirect(request, Advertised("", data.get("webServiceUrl") or "", "", data.get("webServiceUrlTls") or ""))
        if refusal := self._service.meters.storage_refusal():
            raise Refusal(503, f"No message can be stored, make room or look at the bookies: {refusal}")
        await self._service.heartbeat.beat()
        return text_answer("ok")

    async def ready(self, request: Request) -> Response:
        """Whether it takes requests; it would not answer otherwise."""
        return text_answer("ok")

    async def version(self, request: Request) -> Response:
        """Tells the version of this software."""
        return text_answer(self._version)

    async def check_backlogs(self, request: Request) -> Response:
        """Backlog quotas are checked now, rather than at the next round."""
        await self._service.housekeeping.check_quotas()
        return no_content()

    # ---- Its configuration

    async def internal(self, request: Request) -> Response:
        """InternalConfigurationData: where metadata is."""
        settings = self._service.dynamic_configuration.runtime()
        store = settings.get("metadataStoreUrl") or settings.get("zookeeperServers") or ""
        shared = settings.get("configurationMetadataStoreUrl") or settings.get("configurationStoreServers") or store
        return json_answer(
            {
                "zookeeperServers": store,
                "configurationStoreServers": shared,
                "metadataStoreUrl": store,
                "configurationMetadataStoreUrl": shared,
                "ledgersRootPath": "/ledgers",
            }
        )

    async def dynamic_names(self, request: Request) -> Response:
        """The keys that can be changed while brokers run."""
        return json_answer(self._service.dynamic_configuration.names())

    async def dynamic_values(self, request: Request) -> Response:
        """Those that were changed, with their values; secrets are masked."""
        stored = await self._service.dynamic_configuration.all()
        return json_answer({key: shown_value(key, value) for key, value in stored.items()})

    async def runtime(self, request: Request) -> Response:
        """Every key with its value in this broker; secrets are masked."""
        return json_answer(self._service.dynamic_configuration.runtime())

    async def change_configuration(self, request: Request) -> Response:
        """Changes a setting on every broker; 412 for a key that does not change, or a value that it cannot have."""
        await self._service.dynamic_configuration.change(request.path_params["key"], request.path_params["value"])
        return no_content()

    async def remove_configuration(self, request: Request) -> Response:
        """Removes a changed setting: the value of the configuration file holds again."""
        await self._service.dynamic_configuration.remove(request.path_params["key"])
        return no_content()


def _host(data: Mapping[str, Any]) -> str:
    """Returns the host in NamespaceEphemeralData."""
    return str(data.get("httpUrl") or data.get("httpUrlTls") or "").partition("://")[2]
