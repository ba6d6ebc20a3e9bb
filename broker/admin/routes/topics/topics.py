"""Routes below /admin/v2/persistent: create, list, delete, partitions and stats of topics (PersistentTopics)."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.paths import encode_name

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicConflict, TopicNotFound
from ....service.lifecycle.partitioned_creation import PartitionedCreation
from ....service.lifecycle.partitioned_deletion import PartitionedDeletion
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import TopicName
from ....topic.contract import Topic
from ...rest.answers import BadRequest, Refusal, json_answer, no_content, read_json, whole_number
from ...rest.each_partition import EachPartition
from ...rest.elsewhere import ask
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import TOPIC, full_names, names_in, namespace_of, topic_of
from ...stats.partitioned_stats import partitioned_stats_json
from ...stats.topic_stats import STATS_QUERY, told_stats
from .new_partitions import copy_subscriptions

_AUTHORITATIVE = Query("authoritative", bool, False)
_FORCE = Query("force", bool, False)
_SYSTEM_TOPICS = Query("includeSystemTopic", bool, False)


class TopicRoutes:
    """The handlers; one instance per server."""

    def __init__(
        self,
        catalogue: Catalogue,
        lookup: Lookup,
        lifecycle: TopicLifecycle,
        creation: PartitionedCreation,
        deletion: PartitionedDeletion,
    ) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle
        self._creation, self._deletion = creation, deletion
        self._parts = EachPartition(catalogue, lookup, lifecycle)

    def routes(self) -> list[Endpoint]:
        def needs(operation: str) -> Access:
            return Access(Kind.TOPIC, operation)

        create, topics = Access(Kind.NAMESPACE, "CREATE_TOPIC"), Access(Kind.NAMESPACE, "GET_TOPICS")
        delete, resize = Access(Kind.NAMESPACE, "DELETE_TOPIC"), Access(Kind.NAMESPACE_POLICY, "PARTITION", writes=True)
        namespace, parts = "/admin/v2/persistent/{tenant}/{namespace}", TOPIC + "/partitions"
        resized = (_AUTHORITATIVE, _FORCE, Query("updateLocalTopicOnly", bool, False))
        created = (_AUTHORITATIVE, Query("createLocalTopicOnly", bool, False))
        looked_up = (_AUTHORITATIVE, Query("checkAllowAutoCreation", bool, False))
        listed = (_SYSTEM_TOPICS, Query("bundle"), Query("properties", bool, False))
        whole = (*STATS_QUERY, _AUTHORITATIVE)
        return [
            Endpoint("GET", namespace, self.list_all, topics, listed, answer=list[str]),
            Endpoint("GET", namespace + "/partitioned", self.list_partitioned, topics, (_SYSTEM_TOPICS,), answer=list[str]),
            Endpoint("GET", parts, self.get_partitions, needs("LOOKUP"), looked_up, answer=dict[str, Any]),
            Endpoint("PUT", parts, self.create_partitioned, create, created),
            Endpoint("POST", parts, self.update_partitions, resize, resized),
            Endpoint("DELETE", parts, self.delete_partitioned, delete, (_AUTHORITATIVE, _FORCE)),
            Endpoint("GET", TOPIC + "/stats", self.stats, needs("GET_STATS"), whole, answer=dict[str, Any]),
            Endpoint(
                "GET",
                TOPIC + "/partitioned-stats",
                self.partitioned_stats,
                needs("GET_STATS"),
                (*whole, Query("perPartition", bool, True)),
                answer=dict[str, Any],
            ),
            Endpoint("PUT", TOPIC, self.create, create, (_AUTHORITATIVE,), dict[str, str] | None, body_optional=True),
            Endpoint("DELETE", TOPIC, self.delete, delete, (_AUTHORITATIVE, _FORCE)),
        ]

    async def list_all(self, request: Request) -> Response:
        """Tells the topics of a namespace, or of one bundle of it."""
        namespace, query = namespace_of(request), request.state.query
        topics = await self._catalogue.list_topics(namespace, system_topics=query["includeSystemTopic"])
        return json_answer(await names_in(namespace, query["bundle"], topics))

    async def list_partitioned(self, request: Request) -> Response:
        """Tells the partitioned topics of a namespace."""
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        return json_answer(await full_names(await self._catalogue.partitioned_topics.list_in(namespace)))

    async def get_partitions(self, request: Request) -> Response:
        """Returns the number of partitions of a topic; 0: it is not partitioned."""
        found = await self._creation.partitions(topic_of(request), may_create=request.state.query["checkAllowAutoCreation"])
        body: dict[str, Any] = {"partitions": found.partitions, "deleted": found.is_deleted}
        if found.properties:
            body["properties"] = dict(found.properties)
        return json_answer(body)

    async def create_partitioned(self, request: Request) -> Response:
        """Makes a partitioned topic. The body is a number, or partitions and properties."""
        topic = topic_of(request)
        if topic.is_partition:
            raise Refusal(412, "Partitioned Topic Name should not contain '-partition-'")
        _require_creatable(topic)
        partitions, properties = _partitions_of(await read_json(request))
        if partitions < 1:
            raise Refusal(406, "Number of partitions should be more than 0")
        await self._creation.create(topic, partitions, properties)
        return no_content()

    async def update_partitions(self, request: Request) -> Response:
        """Adds partitions to a topic, up to this number."""
        topic = topic_of(request)
        partitions, _ = _partitions_of(await read_json(request))
        now = (await self._creation.partitions(topic, may_create=True)).partitions
        if not now:
            raise Refusal(409, f"Topic {topic} is not the partitioned topic.")
        if partitions < now:
            raise Refusal(422, f"Desired partitions {partitions} can't be less than the current partitions {now}.")
        if partitions > now:
            await self._catalogue.partitioned_topics.update(topic, partitions)
        await copy_subscriptions(self._parts, topic, partitions)
        return no_content()

    async def delete_partitioned(self, request: Request) -> Response:
        """Deletes a partitioned topic with its partitions."""
        topic = topic_of(request)
        if not (await self._catalogue.partitioned_topics.get(topic)).partitions:
            if not await self._catalogue.topic_exists(topic):
                raise Refusal(404, f"Topic {topic} not found.")
            advice = "Instead of calling delete-partitioned-topic please call delete."
            raise Refusal(409, f"{topic} is a non-partitioned topic. {advice}")
        await self._deletion.delete(topic, force=request.state.query["force"], elsewhere=self._delete_elsewhere)
        return no_content()

    async def _delete_elsewhere(self, topic: TopicName, force: bool) -> None:
        """A partition that another broker serves."""
        found = await self._lookup.find(topic)
        path = f"/admin/v2/{topic.domain}/{topic.namespace}/{encode_name(topic.local_name)}"
        await ask(self._lookup.neighbours, found.address, "DELETE", f"{path}?force={str(force).lower()}")

    async def create(self, request: Request) -> Response:
        """Makes a topic that is not partitioned; the body is its properties."""
        topic, properties = topic_of(request), request.state.body
        await self._catalogue.namespaces.require(topic.namespace)
        await self._check_new(topic)
        made = await self._lifecycle.create_topic(topic)
        if properties:
            await made.operations.change_properties(lambda before: before.update(properties))
        return no_content()

    async def delete(self, request: Request) -> Response:
        """Deletes a topic that is not partitioned."""
        topic = topic_of(request)
        if (await self._catalogue.partitioned_topics.get(topic)).partitions:
            advice = "instead of calling delete topic, please call delete-partitioned-topic."
            raise Refusal(409, f"{topic} is a partitioned topic, {advice}")
        await self._lifecycle.delete_topic(topic, force=request.state.query["force"])
        return no_content()

    async def stats(self, request: Request) -> Response:
        """Returns the rates in and out of a topic, and the backlogs of its subscriptions."""
        topic = await self._loaded(topic_of(request))
        return json_answer(await told_stats(topic, request.state.query, self._lookup.advertised, written=True))

    async def partitioned_stats(self, request: Request) -> Response:
        """Tells the stats of a partitioned topic: sums, and each partition by itself."""
        topic, query = topic_of(request), request.state.query
        found = await self._catalogue.partitioned_topics.get(topic)
        if not found.partitions:
            raise Refusal(404, f"Partitioned Topic {topic} not found")

        async def tell(one: Topic) -> dict[str, Any]:
            return await told_stats(one, query, self._lookup.advertised)

        route = "stats" + (f"?{request.url.query}" if request.url.query else "")
        metadata: dict[str, Any] = {"partitions": found.partitions, "deleted": False}
        metadata |= {"properties": dict(found.properties)} if found.properties else {}
        with_each, parts = query["perPartition"], self._parts.ask(topic, found.partitions, route, tell)
        return json_answer(await partitioned_stats_json(metadata, await parts, per_partition=with_each))

    async def _check_new(self, topic: TopicName) -> None:
        """Checks that a topic of this name may be created by hand, in Apache's words."""
        _require_creatable(topic)
        whole = topic.partitioned
        partitions = (await self._catalogue.partitioned_topics.get(whole)).partitions
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
        await self._catalogue.namespaces.require(topic.namespace)
        partitions = (await self._catalogue.partitioned_topics.get(topic.partitioned)).partitions
        if topic.is_partition and topic.partition_index >= partitions:
            raise Refusal(404, "Topic partitions were not yet created")
        if partitions and not topic.is_partition:
            raise TopicNotFound(str(topic))
        return await self._lifecycle.topic(topic, may_create=False)


def _require_creatable(topic: TopicName) -> None:
    """PersistentTopicsBase.validateCreateTopic."""
    if topic.is_of_transactions:
        raise BadRequest("Cannot create topic in system topic format!")


def _partitions_of(body: Any) -> tuple[int, dict[str, str]]:
    """A bare number, or Apache's PartitionedTopicMetadata."""
    properties: Any = {}
    if isinstance(body, dict):
        body, properties = body.get("partitions"), body.get("properties") or {}
    partitions = whole_number(body)
    if partitions is None:
        raise BadRequest("expected the number of partitions")
    if not isinstance(properties, dict):
        raise BadRequest("properties: expected an object")
    return partitions, {str(key): str(value) for key, value in properties.items()}
