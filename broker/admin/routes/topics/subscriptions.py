"""Routes for the subscriptions of a topic: list, create, delete (PersistentTopics). Moving one is `cursors`'.

A partitioned topic has the subscriptions of its partitions, at any broker.
"""

from starlette.requests import Request
from starlette.responses import Response

from managed_ledger.contract import EARLIEST, LATEST

from ....errors import BrokerError, ServerError
from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import TopicName
from ....topic.contract import Topic
from ...rest.answers import Refusal, json_answer, no_content, parsed_json, read_bytes
from ...rest.each_partition import EachPartition, where_subscribed
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import TOPIC, topic_of
from ...rest.positions import Place, first_position, read_place


class SubscriptionRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle
        self._parts = EachPartition(catalogue, lookup, lifecycle)

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

        async def tell(topic: Topic) -> list[str]:
            return topic.operations.subscription_names()

        found = await self._parts.do(request, tell)
        return json_answer(sorted(set[str]().union(*found)))

    async def create(self, request: Request) -> Response:
        """Makes a subscription, also on each partition. A missing topic is made if the settings allow it, as by a consumer."""
        if request.state.query["replicated"]:
            raise Refusal(501, "replicated: replication between clusters is not there yet")
        subscription, content = request.path_params["subscription"], await read_bytes(request)
        body = parsed_json(content)
        place = Place(LATEST) if body is None else read_place(body)
        await self._check_partition(topic_of(request))
        await self._parts.do(request, lambda topic: _create(topic, subscription, place), content, may_create=True)
        return no_content()

    async def _check_partition(self, topic: TopicName) -> None:
        """Refuses a partition beyond the number that its topic has."""
        if topic.is_partition:
            partitions = (await self._catalogue.partitioned_topics.get(topic.partitioned)).partitions
            if 0 < partitions <= topic.partition_index:
                raise Refusal(412, "Topic does not exist and cannot be auto-created")

    async def delete(self, request: Request) -> Response:
        """Deletes a subscription, also of each partition."""
        subscription, force = request.path_params["subscription"], request.state.query["force"]
        work = where_subscribed(request, lambda topic: _delete(topic, subscription, force=force))
        try:
            await self._parts.do(request, work)
        except Refusal as refused:
            is_partitioned = (await self._catalogue.partitioned_topics.get(topic_of(request))).partitions > 0
            if is_partitioned and refused.status == 404:
                raise Refusal(404, "Subscription not found") from refused
            raise
        return no_content()


async def _create(topic: Topic, subscription: str, place: Place) -> None:
    if topic.operations.has_subscription(subscription):
        raise Refusal(409, "Subscription already exists for topic")
    # made at the earliest, so that a crash before the next step leaves it too much to read rather than too little
    is_early = place.position != LATEST
    await topic.create_subscription(subscription, from_earliest=is_early, properties=place.properties or {})
    if place.position not in (EARLIEST, LATEST):
        await topic.operations.reset(subscription, *await first_position(topic, place))


async def _delete(topic: Topic, subscription: str, *, force: bool) -> None:
    try:
        await topic.delete_subscription(subscription, force=force)
    except BrokerError as error:
        if error.code is not ServerError.SUBSCRIPTION_NOT_FOUND:  # another unsubscribe was first
            raise
