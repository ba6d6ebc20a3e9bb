"""Routes that act on the subscriptions of all topics of a namespace, or of one bundle of it: clear backlogs, unsubscribe.

(Apache: NamespacesBase, internalClearNamespaceBacklog...) Each broker does it for the topics that it serves; the one that is
asked for a whole namespace asks the owner of each bundle.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from metadata.paths import encode_name
from ports.loop.slices import in_slices

from ....compaction.compacted_topic import COMPACTION_CURSOR
from ....errors import BrokerError, ServerError
from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.catalogue.topic_lists import NAMES_PER_SLICE
from ....service.errors import BundleNotFound, TopicElsewhere, TopicNotFound
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.ownership.bundles import Bundle
from ....service.topic_name import TopicName
from ....topic.contract import Topic
from ...rest.answers import no_content
from ...rest.elsewhere import ask
from ...rest.endpoints import Access, Endpoint
from ...rest.names import namespace_of
from .bundles import bundles_of

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_BUNDLE = _NAMESPACE + "/{bundle}"
_Work = Callable[[Topic], Awaitable[None]]


class NamespaceBacklogRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle

    def routes(self) -> list[Endpoint]:
        clear, unsubscribe = Access(Kind.NAMESPACE, "CLEAR_BACKLOG"), Access(Kind.NAMESPACE, "UNSUBSCRIBE")
        one = "/{subscription}"
        return [
            Endpoint("POST", _NAMESPACE + "/clearBacklog", self.clear, clear),
            Endpoint("POST", _NAMESPACE + "/clearBacklog" + one, self.clear, clear),
            Endpoint("POST", _BUNDLE + "/clearBacklog", self.clear, clear),
            Endpoint("POST", _BUNDLE + "/clearBacklog" + one, self.clear, clear),
            Endpoint("POST", _NAMESPACE + "/unsubscribe" + one, self.unsubscribe, unsubscribe),
            Endpoint("POST", _BUNDLE + "/unsubscribe" + one, self.unsubscribe, unsubscribe),
        ]

    async def clear(self, request: Request) -> Response:
        """Skip everything that is stored, of one subscription or of all but compaction's own."""
        only = request.path_params.get("subscription")

        async def clear(topic: Topic) -> None:
            every = [name for name in topic.operations.subscription_names() if name != COMPACTION_CURSOR]
            for name in [only] if only is not None else every:
                await _where_it_is(topic.operations.clear_backlog(name))

        return await self._each(request, "clearBacklog" + ("" if only is None else f"/{encode_name(only)}"), clear)

    async def unsubscribe(self, request: Request) -> Response:
        """Delete a subscription; one with consumers stays (412)."""
        name = request.path_params["subscription"]

        async def unsubscribe(topic: Topic) -> None:
            await _where_it_is(topic.delete_subscription(name, force=False))

        return await self._each(request, f"unsubscribe/{encode_name(name)}", unsubscribe)

    async def _each(self, request: Request, action: str, work: _Work) -> Response:
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        cut = await bundles_of(self._lookup, namespace)
        text = request.path_params.get("bundle")
        named = cut.all() if text is None else [found for found in [cut.named(text)] if found is not None]
        if not named:
            raise BundleNotFound(str(namespace), text or "")
        inside: dict[Bundle, list[TopicName]] = {bundle: [] for bundle in named}
        async for topic in in_slices(await self._catalogue.list_topics(namespace), NAMES_PER_SLICE):
            inside.get(cut.of(topic), []).append(topic)
        for bundle, topics in inside.items():
            await self._in_bundle(bundle, topics, action, work)
        return no_content()

    async def _in_bundle(self, bundle: Bundle, topics: list[TopicName], action: str, work: _Work) -> None:
        async for name in in_slices(topics):
            try:
                await work(await self._lifecycle.topic(name, may_create=False))
            except TopicNotFound:
                continue  # deleted meanwhile
            except TopicElsewhere:
                found = await self._lookup.find(name)
                path = f"/admin/v2/namespaces/{bundle.namespace}/{bundle.range}/{action}"
                await ask(self._lookup.neighbours, found.address, "POST", path)
                return


async def _where_it_is(work: Awaitable[object]) -> None:
    """A topic that has no such subscription has nothing to do."""
    try:
        await work
    except BrokerError as error:
        if error.code is not ServerError.SUBSCRIPTION_NOT_FOUND:
            raise
