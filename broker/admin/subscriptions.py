"""Routes for the subscriptions of a topic: list, create, delete (PersistentTopics). Moving one is `cursors`'."""

from starlette.requests import Request
from starlette.responses import Response

from managed_ledger.contract import EARLIEST, LATEST

from ..errors import BrokerError, ServerError
from ..security.needs import Kind
from ..service.broker_service import BrokerService
from ..service.topic_name import TopicName
from ..topic.contract import Topic
from .answers import Refusal, json_answer, no_content, read_json
from .endpoints import Access, Endpoint, Query
from .names import TOPIC, topic_of
from .positions import Place, first_position, read_place


class SubscriptionRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[Endpoint]:
        one, plain = TOPIC + "/subscription/{subscription}", (Query("authoritative", bool, False),)
        names, make = Access(Kind.TOPIC, "GET_SUBSCRIPTIONS"), Access(Kind.TOPIC, "SUBSCRIBE")
        remove, replicated = Access(Kind.TOPIC, "UNSUBSCRIBE"), (*plain, Query("replicated", bool, False))
        return [
            Endpoint("GET", TOPIC + "/subscriptions", self.names, names, plain, answer=list[str]),
            Endpoint("PUT", one, self.create, make, replicated),
            Endpoint("DELETE", one, self.delete, remove, (*plain, Query("force", bool, False))),
        ]

    async def names(self, request: Request) -> Response:
        """Tells the subscriptions of a topic."""
        found: set[str] = set()
        for name in await self._parts(topic_of(request)):
            found |= (await self._service.topic(name, may_create=False)).stats().subscriptions.keys()
        return json_answer(sorted(found))

    async def create(self, request: Request) -> Response:
        """Makes a subscription, also on each partition. A missing topic is made if the settings allow it, as by a consumer."""
        if request.state.query["replicated"]:
            raise Refusal(501, "replicated: replication between clusters is not there yet")
        topic, subscription = topic_of(request), request.path_params["subscription"]
        body = await read_json(request)
        place = Place(LATEST) if body is None else read_place(body)
        topics = [await self._service.topic(name, may_create=True) for name in await self._parts(topic)]
        if all(each.operations.has_subscription(subscription) for each in topics):
            raise Refusal(409, "Subscription already exists for topic")
        for each in topics:
            # made at the earliest, so that a crash before the next step leaves it too much to read rather than too little
            is_early = place.position != LATEST
            await each.create_subscription(subscription, from_earliest=is_early, properties=place.properties or {})
            if place.position not in (EARLIEST, LATEST):
                await each.operations.reset(subscription, *await first_position(each, place))
        return no_content()

    async def delete(self, request: Request) -> Response:
        """Deletes a subscription, also of each partition."""
        topic, subscription = topic_of(request), request.path_params["subscription"]
        names = await self._parts(topic)
        topics = [await self._service.topic(name, may_create=False) for name in names]
        having = [each for each in topics if each.operations.has_subscription(subscription)]
        if not having:
            is_whole = names == [topic]
            raise Refusal(
                404, f"Subscription {subscription} not found for topic {topic}" if is_whole else "Subscription not found"
            )
        for each in having:
            await _delete(each, subscription, force=request.state.query["force"])
        return no_content()

    async def _parts(self, topic: TopicName) -> list[TopicName]:
        """The partitions, or the topic itself."""
        partitions = (await self._service.partitioned_topics.get(topic)).partitions
        return [topic.partition(index) for index in range(partitions)] or [topic]


async def _delete(topic: Topic, subscription: str, *, force: bool) -> None:
    try:
        await topic.delete_subscription(subscription, force=force)
    except BrokerError as error:
        if error.code is not ServerError.SUBSCRIPTION_NOT_FOUND:  # somebody else's unsubscribe was first
            raise
