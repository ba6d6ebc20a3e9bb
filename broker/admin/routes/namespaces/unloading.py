"""Routes that unload: a namespace, one bundle of it, a topic, wherever in the cluster they are served."""

from starlette.requests import Request
from starlette.responses import Response

from metadata.paths import encode_name

from ....security.authorization.needs import Kind
from ....service.addresses import Advertised
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicNotFound
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.load.load_driver import LoadBalancing
from ....service.lookup import Lookup
from ....service.topic_name import NamespaceName, TopicName
from ...rest.answers import no_content
from ...rest.elsewhere import ask, redirect
from ...rest.endpoints import SUPER_USER, Access, Endpoint, Query
from ...rest.names import TOPIC, namespace_of, topic_of
from .bundles import bundles_of

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_DESTINATION = "destinationBroker"


class UnloadingRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle, load: LoadBalancing) -> None:
        self._catalogue, self._lookup, self._lifecycle, self._load = catalogue, lookup, lifecycle, load

    def routes(self) -> list[Endpoint]:
        destination = (Query(_DESTINATION, description="The id of the broker that is to serve it next."),)
        return [
            Endpoint("PUT", _NAMESPACE + "/unload", self.namespace, SUPER_USER),
            Endpoint("PUT", _NAMESPACE + "/{bundle}/unload", self.bundle, SUPER_USER, destination),
            Endpoint(
                "PUT", TOPIC + "/unload", self.topic, Access(Kind.TOPIC, "UNLOAD"), (Query("authoritative", bool, False),)
            ),
        ]

    async def namespace(self, request: Request) -> Response:
        """Bundle by bundle, each where it is served."""
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        await unload_namespace(self._lookup, namespace)
        return no_content()

    async def bundle(self, request: Request) -> Response:
        """Given up by its owner, for the broker that is named or for any."""
        namespace, text = namespace_of(request), request.path_params["bundle"]
        await self._catalogue.namespaces.require(namespace)
        destination = request.state.query[_DESTINATION] or ""
        leader = await self._load.driver.apaches_leader() if destination and self._load.driver is not None else ""
        if leader:
            await self._lookup.owners.wish(namespace, text, destination)
            return redirect(request, Advertised("", leader))
        elsewhere = await self._lookup.owners.unload(namespace, text, destination)
        return no_content() if elsewhere is None else redirect(request, elsewhere.address, without=_DESTINATION)

    async def topic(self, request: Request) -> Response:
        """Unloads a topic. A stored topic that is not loaded counts as unloaded."""
        topic = topic_of(request)
        partitions = (await self._catalogue.partitioned_topics.get(topic)).partitions
        may_be = bool(partitions) or await self._catalogue.topic_exists(topic)
        if not may_be and (topic.is_persistent or await self._lookup.owners.owner(topic) is None):
            raise TopicNotFound(str(topic))
        for name in [topic.partition(index) for index in range(partitions)] or [topic]:
            await self._unload(name)
        return no_content()

    async def _unload(self, name: TopicName) -> None:
        if self._catalogue.loaded_topic(name) is not None:
            await self._lifecycle.unload_topic(name)
            return
        elsewhere = await self._lookup.owners.owner(name)
        if elsewhere is not None:
            path = f"/admin/v2/{name.domain}/{name.namespace}/{encode_name(name.local_name)}/unload"
            await ask(self._lookup.neighbours, elsewhere.address, "PUT", path)


async def unload_namespace(lookup: Lookup, namespace: NamespaceName) -> None:
    """Asks the owner of every bundle to give it up. Refusal where one does not."""
    for each in (await bundles_of(lookup, namespace)).all():
        elsewhere = await lookup.owners.unload(namespace, each.range)
        if elsewhere is not None:
            path = f"/admin/v2/namespaces/{namespace}/{each.range}/unload"
            await ask(lookup.neighbours, elsewhere.address, "PUT", path)
