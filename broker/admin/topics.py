"""Routes below /admin/v2/persistent: create, list, delete, partitions and stats of topics (PersistentTopics)."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from metadata.paths import encode_name

from ..service.broker_service import BrokerService
from ..service.errors import TopicConflict, TopicElsewhere, TopicNotFound
from ..service.topic_name import TopicName
from ..topic.contract import Topic
from .answers import BadRequest, Refusal, flag, json_answer, no_content, read_json
from .elsewhere import ask_json
from .names import TOPIC, namespace_of, topic_of
from .stats import partitioned_stats_json, topic_stats_json


class TopicRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/admin/v2/persistent/{tenant}/{namespace}", self.list_all),
            ("GET", "/admin/v2/persistent/{tenant}/{namespace}/partitioned", self.list_partitioned),
            ("GET", TOPIC + "/partitions", self.get_partitions),
            ("PUT", TOPIC + "/partitions", self.create_partitioned),
            ("POST", TOPIC + "/partitions", self.update_partitions),
            ("DELETE", TOPIC + "/partitions", self.delete_partitioned),
            ("GET", TOPIC + "/stats", self.stats),
            ("GET", TOPIC + "/partitioned-stats", self.partitioned_stats),
            ("PUT", TOPIC, self.create),
            ("DELETE", TOPIC, self.delete),
        ]
        return [Route(path, handler, methods=[method]) for method, path, handler in table]

    async def list_all(self, request: Request) -> Response:
        topics = await self._service.list_topics(namespace_of(request), system_topics=flag(request, "includeSystemTopic"))
        return json_answer([str(topic) for topic in topics])

    async def list_partitioned(self, request: Request) -> Response:
        namespace = namespace_of(request)
        await self._service.namespaces.require(namespace)
        return json_answer([str(topic) for topic in await self._service.partitioned_topics.list_in(namespace)])

    async def get_partitions(self, request: Request) -> Response:
        found = await self._service.partitions(topic_of(request), may_create=flag(request, "checkAllowAutoCreation"))
        body: dict[str, Any] = {"partitions": found.partitions, "deleted": False}
        if found.properties:
            body["properties"] = dict(found.properties)
        return json_answer(body)

    async def create_partitioned(self, request: Request) -> Response:
        topic = topic_of(request)
        if topic.is_partition:
            raise Refusal(412, "Partitioned Topic Name should not contain '-partition-'")
        partitions, properties = _partitions_of(await read_json(request))
        if partitions < 1:
            raise Refusal(406, "Number of partitions should be more than 0")
        await self._service.create_partitioned_topic(topic, partitions, properties)
        return no_content()

    async def update_partitions(self, request: Request) -> Response:
        topic = topic_of(request)
        partitions, _ = _partitions_of(await read_json(request))
        now = (await self._service.partitions(topic, may_create=True)).partitions
        if not now:
            raise Refusal(409, f"Topic {topic} is not the partitioned topic.")
        if partitions < now:
            raise Refusal(422, f"Desired partitions {partitions} can't be less than the current partitions {now}.")
        if partitions > now:
            await self._service.partitioned_topics.update(topic, partitions)
        return no_content()

    async def delete_partitioned(self, request: Request) -> Response:
        topic = topic_of(request)
        if not (await self._service.partitioned_topics.get(topic)).partitions:
            if not await self._service.topic_exists(topic):
                raise Refusal(404, f"Topic {topic} not found.")
            advice = "Instead of calling delete-partitioned-topic please call delete."
            raise Refusal(409, f"{topic} is a non-partitioned topic. {advice}")
        await self._service.delete_partitioned_topic(topic, force=flag(request, "force"))
        return no_content()

    async def create(self, request: Request) -> Response:
        """The body is properties, which topics have nowhere to keep yet: refused rather than lost."""
        topic = topic_of(request)
        body = await read_json(request)
        if body is not None and not isinstance(body, dict):
            raise BadRequest("expected an object of properties")
        if body:
            raise Refusal(501, "Properties of a topic that is not partitioned are not kept yet")
        await self._service.namespaces.require(topic.namespace)
        await self._check_new(topic)
        await self._service.create_topic(topic)
        return no_content()

    async def delete(self, request: Request) -> Response:
        topic = topic_of(request)
        if (await self._service.partitioned_topics.get(topic)).partitions:
            advice = "instead of calling delete topic, please call delete-partitioned-topic."
            raise Refusal(409, f"{topic} is a partitioned topic, {advice}")
        await self._service.delete_topic(topic, force=flag(request, "force"))
        return no_content()

    async def stats(self, request: Request) -> Response:
        return json_answer(topic_stats_json(await self._loaded(topic_of(request))))

    async def partitioned_stats(self, request: Request) -> Response:
        topic = topic_of(request)
        found = await self._service.partitioned_topics.get(topic)
        if not found.partitions:
            raise Refusal(404, f"Partitioned Topic {topic} not found")
        stats = {}
        for index in range(found.partitions):
            name = topic.partition(index)
            one = await self._partition_stats(name) if await self._service.topic_exists(name) else None
            if one is not None:
                stats[str(name)] = one
        return json_answer(partitioned_stats_json(found.partitions, stats, per_partition=flag(request, "perPartition", True)))

    async def _partition_stats(self, name: TopicName) -> Any:
        """Whoever serves it is asked; None when it is not there any more. To send the whole request on would send it in circles
        where partitions are served by several brokers."""
        try:
            return topic_stats_json(await self._loaded(name))
        except TopicElsewhere:
            found = await self._service.lookup(name)
            if found.address == self._service.advertised:
                return topic_stats_json(await self._loaded(name))
            path = f"/admin/v2/persistent/{name.namespace}/{encode_name(name.local_name)}/stats"
            return await ask_json(found.address.http_url, path)

    async def _check_new(self, topic: TopicName) -> None:
        """That a topic of this name may be created by hand, as Apache puts it."""
        whole = topic.partitioned
        partitions = (await self._service.partitioned_topics.get(whole)).partitions
        if not topic.is_partition:
            if partitions:
                raise TopicConflict(str(topic))
            return
        refused = f'Can\'t create topic {topic.local_name} with "-partition-" followed by'
        if not partitions:
            raise Refusal(412, f"{refused} numeric value if there isn't a partitioned topic {whole.local_name} created.")
        if topic.partition_index >= partitions:
            raise Refusal(412, f"{refused} a number smaller than number of partition of partitioned topic {whole.local_name}")

    async def _loaded(self, topic: TopicName) -> Topic:
        await self._service.namespaces.require(topic.namespace)
        partitions = (await self._service.partitioned_topics.get(topic.partitioned)).partitions
        if topic.is_partition and topic.partition_index >= partitions:
            raise Refusal(404, "Topic partitions were not yet created")
        if partitions and not topic.is_partition:
            raise TopicNotFound(str(topic))
        return await self._service.topic(topic, may_create=False)


def _partitions_of(body: Any) -> tuple[int, dict[str, str]]:
    """A bare number, or Apache's PartitionedTopicMetadata."""
    properties: Any = {}
    if isinstance(body, dict):
        body, properties = body.get("partitions"), body.get("properties") or {}
    if not isinstance(body, int) or isinstance(body, bool):
        raise BadRequest("expected the number of partitions")
    if not isinstance(properties, dict):
        raise BadRequest("properties: expected an object")
    return body, {str(key): str(value) for key, value in properties.items()}
