"""Routes for the subscriptions of a topic: list, create, delete (PersistentTopics). Moving one is `cursors`'."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from managed_ledger.contract import EARLIEST, LATEST

from ..errors import BrokerError, ServerError
from ..service.broker_service import BrokerService
from ..service.topic_name import TopicName
from ..topic.contract import Topic
from .answers import Refusal, flag, json_answer, no_content, read_json
from .names import TOPIC, topic_of
from .positions import Place, first_position, read_place


class SubscriptionRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        one = TOPIC + "/subscription/{subscription:path}"
        return [
            Route(TOPIC + "/subscriptions", self.names, methods=["GET"]),
            Route(one, self.create, methods=["PUT"]),
            Route(one, self.delete, methods=["DELETE"]),
        ]

    async def names(self, request: Request) -> Response:
        found: set[str] = set()
        for name in await self._parts(topic_of(request)):
            found |= (await self._service.topic(name, may_create=False)).stats().subscriptions.keys()
        return json_answer(sorted(found))

    async def create(self, request: Request) -> Response:
        """On each partition of a partitioned topic. As with a consumer, a missing topic is made if the settings allow it."""
        topic, subscription = topic_of(request), request.path_params["subscription"]
        body = await read_json(request)
        place = Place(LATEST) if body is None else read_place(body)
        topics = [await self._service.topic(name, may_create=True) for name in await self._parts(topic)]
        if all(subscription in each.stats().subscriptions for each in topics):
            raise Refusal(409, "Subscription already exists for topic")
        for each in topics:
            # made at the earliest, so that a crash before the next step leaves it too much to read rather than too little
            is_early = place.position != LATEST
            await each.create_subscription(subscription, from_earliest=is_early, properties=place.properties or {})
            if place.position not in (EARLIEST, LATEST):
                await each.operations.reset(subscription, *await first_position(each, place))
        return no_content()

    async def delete(self, request: Request) -> Response:
        topic, subscription = topic_of(request), request.path_params["subscription"]
        names = await self._parts(topic)
        topics = [await self._service.topic(name, may_create=False) for name in names]
        having = [each for each in topics if subscription in each.stats().subscriptions]
        if not having:
            is_whole = names == [topic]
            raise Refusal(
                404, f"Subscription {subscription} not found for topic {topic}" if is_whole else "Subscription not found"
            )
        for each in having:
            await _delete(each, subscription, force=flag(request, "force"))
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
