"""Work of a route on each partition of a topic: here, or at the broker that serves the partition.

Redirecting the whole request would send it in circles where several brokers serve the partitions.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request

from metadata.paths import encode_name
from ports.loop.slices import in_slices

from ...service.catalogue.catalogue import Catalogue
from ...service.errors import TopicElsewhere, TopicNotFound
from ...service.lifecycle.topic_lifecycle import TopicLifecycle
from ...service.lookup import Lookup
from ...service.topic_name import TopicName
from ...topic.contract import Topic
from .answers import Refusal
from .elsewhere import ask_json, pass_on
from .names import topic_of

Tell = Callable[[Topic], Awaitable[dict[str, Any]]]
T = TypeVar("T")

_NOT_ALL = (404, 409)
"""Statuses with which a single partition may refuse: it has no such subscription, or it has it already."""
_SEGMENTS_BEFORE = 7
"""Segments of a path before those behind the topic."""


class EachPartition:
    """Work on a topic or on each of its partitions."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle

    async def ask(self, topic: TopicName, count: int, route: str, tell: Tell) -> dict[str, Any]:
        """Returns the answers of existing partitions by full name. Other brokers are asked with GET on `route`."""
        found = {}
        async for index in in_slices(range(count)):
            name = topic.partition(index)
            may_be = await self._catalogue.topic_exists(name) or not (name.is_persistent or self._lookup.owners.serves(name))
            one = await self._ask_one(name, route, tell) if may_be else None
            if one is not None:
                found[str(name)] = one
        return found

    async def do(
        self,
        request: Request,
        work: Callable[[Topic], Awaitable[T]],
        body: bytes = b"",
        *,
        may_create: bool = False,
        tail: str | None = None,
    ) -> list[T]:
        """Does `work` on the topic of a request, or on each partition that does not refuse with 404 or 409. When all do, raises
        the first Refusal. Requests for partitions elsewhere are passed on, with `body`; after the topic their path has `tail`,
        or the request's own. A topic that is not partitioned may be TopicElsewhere."""
        whole = topic_of(request)
        count = (await self._catalogue.partitioned_topics.get(whole)).partitions
        if not count:
            return [await work(await self._lifecycle.topic(whole, may_create=may_create))]

        after = _tail(request) if tail is None else tail
        done, refused = list[T](), list[Refusal]()
        async for name in in_slices(map(whole.partition, range(count))):
            try:
                done.append(await self._do_one(name, request.method, after, work, body, may_create=may_create))
            except TopicNotFound as error:
                refused.append(Refusal(404, error.message))
            except Refusal as error:
                if error.status not in _NOT_ALL:
                    raise
                refused.append(error)
        if not done:
            raise refused[0]
        return done

    async def do_on(
        self, name: TopicName, method: str, after: str, work: Callable[[Topic], Awaitable[None]], body: bytes
    ) -> None:
        """Does `work` on one partition, which is made where it is missing. Another broker that serves it gets a request whose
        path has `after` behind the topic; a refusal with 409, for what is there already, counts as done."""
        try:
            await self._do_one(name, method, after, work, body, may_create=True)
        except Refusal as refused:
            if refused.status != 409:
                raise

    async def _ask_one(self, name: TopicName, route: str, tell: Tell) -> Any:
        try:
            return await tell(await self._lifecycle.topic(name, may_create=False))
        except TopicNotFound:
            return None
        except TopicElsewhere:
            found = await self._lookup.find(name)
            if found.address == self._lookup.advertised:
                return await tell(await self._lifecycle.topic(name, may_create=False))
            path = f"/admin/v2/{name.domain}/{name.namespace}/{encode_name(name.local_name)}/{route}"
            return await ask_json(self._lookup.neighbours, found.address, path)

    async def _do_one(
        self,
        name: TopicName,
        method: str,
        after: str,
        work: Callable[[Topic], Awaitable[T]],
        body: bytes,
        *,
        may_create: bool,
    ) -> T:
        try:
            return await work(await self._lifecycle.topic(name, may_create=may_create))
        except TopicElsewhere:
            found = await self._lookup.find(name)
            if found.address == self._lookup.advertised:
                return await work(await self._lifecycle.topic(name, may_create=may_create))
            path = f"/admin/v2/{name.domain}/{name.namespace}/{encode_name(name.local_name)}/{after}"
            answer: T = await pass_on(self._lookup.neighbours, found.address, method, path, body)
            return answer


def where_subscribed(request: Request, work: Callable[[Topic], Awaitable[T]]) -> Callable[[Topic], Awaitable[T]]:
    """The same work, refused (404) by a topic that has no such subscription as the request names."""
    name, subscription = topic_of(request), request.path_params["subscription"]

    async def only_there(topic: Topic) -> T:
        if not topic.operations.has_subscription(subscription):
            raise Refusal(404, f"Subscription {subscription} not found for topic {name}")
        return await work(topic)

    return only_there


def _tail(request: Request) -> str:
    """Returns the end of the path as it was sent, with the query."""
    raw = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    tail = "/".join(raw.split("/")[_SEGMENTS_BEFORE:])
    return f"{tail}?{request.url.query}" if request.url.query else tail
