"""What a route of a partitioned topic asks of each partition, or does to it: here, or at the broker that serves it.

To send the whole request on would send it in circles where partitions are served by several brokers.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request

from metadata.paths import encode_name
from ports.loop.slices import in_slices

from ...service.broker_service import BrokerService
from ...service.errors import TopicElsewhere, TopicNotFound
from ...service.topic_name import TopicName
from ...topic.contract import Topic
from .answers import Refusal
from .elsewhere import ask_json, pass_on
from .names import topic_of

Tell = Callable[[Topic], Awaitable[dict[str, Any]]]
T = TypeVar("T")

_NOT_ALL = (404, 409)
"""With these a partition may refuse what others do: it has no such subscription, or it has it already."""
_SEGMENTS_BEFORE = 7
"""Of a path, before what comes after the topic."""


async def on_each_partition(service: BrokerService, topic: TopicName, count: int, route: str, tell: Tell) -> dict[str, Any]:
    """By full name, without partitions that are not there (any more). `route` is asked with GET where others serve."""
    found = {}
    async for index in in_slices(range(count)):
        name = topic.partition(index)
        may_be = await service.topic_exists(name) or not (name.is_persistent or service.owners.serves(name))
        one = await _of(service, name, route, tell) if may_be else None
        if one is not None:
            found[str(name)] = one
    return found


async def _of(service: BrokerService, name: TopicName, route: str, tell: Tell) -> Any:
    try:
        return await tell(await service.topic(name, may_create=False))
    except TopicNotFound:
        return None
    except TopicElsewhere:
        found = await service.lookup(name)
        if found.address == service.advertised:
            return await tell(await service.topic(name, may_create=False))
        path = f"/admin/v2/{name.domain}/{name.namespace}/{encode_name(name.local_name)}/{route}"
        return await ask_json(service.neighbours, found.address, path)


async def on_parts(
    service: BrokerService,
    request: Request,
    work: Callable[[Topic], Awaitable[T]],
    body: bytes = b"",
    *,
    may_create: bool = False,
    tail: str | None = None,
) -> list[T]:
    """What `work` gives for the topic of a request, or for each of its partitions that does not refuse with 404 or 409; when
    all do, the first Refusal. Where others serve, the request is passed on to them, with `body`; after the topic its path has
    `tail`, or the request's own. A topic that is not partitioned may be TopicElsewhere."""
    whole = topic_of(request)
    count = (await service.partitioned_topics.get(whole)).partitions
    if not count:
        return [await work(await service.topic(whole, may_create=may_create))]

    after = _tail(request) if tail is None else tail
    done, refused = list[T](), list[Refusal]()
    async for name in in_slices(map(whole.partition, range(count))):
        try:
            done.append(await _at_one(service, name, request.method, after, work, body, may_create=may_create))
        except TopicNotFound as error:
            refused.append(Refusal(404, error.message))
        except Refusal as error:
            if error.status not in _NOT_ALL:
                raise
            refused.append(error)
    if not done:
        raise refused[0]
    return done


def where_subscribed(request: Request, work: Callable[[Topic], Awaitable[T]]) -> Callable[[Topic], Awaitable[T]]:
    """The same work, refused (404) by a topic that has no such subscription as the request names."""
    name, subscription = topic_of(request), request.path_params["subscription"]

    async def only_there(topic: Topic) -> T:
        if not topic.operations.has_subscription(subscription):
            raise Refusal(404, f"Subscription {subscription} not found for topic {name}")
        return await work(topic)

    return only_there


async def _at_one(
    service: BrokerService,
    name: TopicName,
    method: str,
    after: str,
    work: Callable[[Topic], Awaitable[T]],
    body: bytes,
    *,
    may_create: bool,
) -> T:
    try:
        return await work(await service.topic(name, may_create=may_create))
    except TopicElsewhere:
        found = await service.lookup(name)
        if found.address == service.advertised:
            return await work(await service.topic(name, may_create=may_create))
        path = f"/admin/v2/{name.domain}/{name.namespace}/{encode_name(name.local_name)}/{after}"
        told: T = await pass_on(service.neighbours, found.address, method, path, body)
        return told


def _tail(request: Request) -> str:
    """Of the path as it was sent, with the query."""
    raw = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    tail = "/".join(raw.split("/")[_SEGMENTS_BEFORE:])
    return f"{tail}?{request.url.query}" if request.url.query else tail
