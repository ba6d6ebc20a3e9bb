"""What a route of a partitioned topic asks of each partition: here, or of the broker that serves it.

To send the whole request on would send it in circles where partitions are served by several brokers.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from metadata.paths import encode_name

from ..service.broker_service import BrokerService
from ..service.errors import TopicElsewhere, TopicNotFound
from ..service.topic_name import TopicName
from ..topic.contract import Topic
from .elsewhere import ask_json

Tell = Callable[[Topic], Awaitable[dict[str, Any]]]


async def on_each_partition(service: BrokerService, topic: TopicName, count: int, route: str, tell: Tell) -> dict[str, Any]:
    """By full name, without partitions that are not there (any more). `route` is asked with GET where others serve."""
    found = {}
    for index in range(count):
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
