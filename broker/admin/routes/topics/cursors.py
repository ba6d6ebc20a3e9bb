"""Routes that move a subscription's place or look at the messages before it (PersistentTopics): skip, expire, reset, peek,
truncate.

A partitioned topic has each partition with the subscription done, where Apache allows it. The topic decides the meaning of a
position; here paths and bodies become positions.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from managed_ledger.contract import LATEST
from metadata.paths import encode_name
from ports.loop.slices import in_slices
from wire.position import Position

from ....errors import BrokerError, ServerError
from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import TopicName
from ....service.topic_schemas import TopicSchemas
from ....topic.contract import Topic
from ...rest.answers import Refusal, json_answer, no_content, nothing, read_json
from ...rest.each_partition import EachPartition, where_subscribed
from ...rest.endpoints import Access, Endpoint, Handler, Query, Text
from ...rest.names import TOPIC, topic_of
from ...rest.positions import first_position, last_message_id_json, message_id_json, read_place
from ...stats.hole_pages import hole_page
from ...stats.internal_stats import internal_stats_json, unstored_stats_json
from ...stats.ledger_metadata import ledger_metadata_texts
from .messages import message_answer

_SUBSCRIPTION = TOPIC + "/subscription/{subscription}"


class CursorRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle, schemas: TopicSchemas) -> None:
        self._catalogue, self._lookup, self._lifecycle, self._schemas = catalogue, lookup, lifecycle, schemas
        self._parts = EachPartition(catalogue, lookup, lifecycle)

    def routes(self) -> list[Endpoint]:
        table: list[tuple[str, str, str, Handler, Any]] = [
            ("POST", _SUBSCRIPTION + "/skip_all", "SKIP", self.skip_all, None),
            ("POST", _SUBSCRIPTION + "/skip/{count:int}", "SKIP", self.skip, None),
            ("POST", _SUBSCRIPTION + "/expireMessages/{seconds:int}", "EXPIRE_MESSAGES", self.expire, None),
            ("POST", _SUBSCRIPTION + "/expireMessages", "EXPIRE_MESSAGES", self.expire_through, None),
            ("POST", TOPIC + "/all_subscription/expireMessages/{seconds:int}", "EXPIRE_MESSAGES", self.expire_all, None),
            ("POST", _SUBSCRIPTION + "/resetcursor/{timestamp:int}", "RESET_CURSOR", self.reset_to_time, None),
            ("POST", _SUBSCRIPTION + "/resetcursor", "RESET_CURSOR", self.reset, None),
            ("GET", _SUBSCRIPTION + "/position/{number:int}", "PEEK_MESSAGES", self.peek, bytes),
            ("POST", _SUBSCRIPTION + "/analyzeBacklog", "CONSUME", self.analyze, dict[str, Any]),
            ("GET", TOPIC + "/ledger/{ledger:int}/entry/{entry:int}", "PEEK_MESSAGES", self.message, bytes),
            ("GET", TOPIC + "/messageid/{timestamp:int}", "PEEK_MESSAGES", self.message_id, dict[str, int]),
            ("GET", TOPIC + "/getMessageIdByIndex", "PEEK_MESSAGES", self.message_id_by_index, dict[str, int]),
            ("POST", TOPIC + "/trim", "TRIM_TOPIC", self.trim, Text.NOTHING),
            ("POST", TOPIC + "/terminate", "TERMINATE", self.terminate, dict[str, int]),
            ("POST", TOPIC + "/terminate/partitions", "TERMINATE", self.terminate_partitions, dict[str, dict[str, int]]),
        ]
        query = (Query("authoritative", bool, False),)
        return [
            *(
                Endpoint(method, path, handler, Access(Kind.TOPIC, operation), query, answer=answer)
                for method, path, operation, handler, answer in table
            ),
            Endpoint(
                "GET",
                TOPIC + "/internalStats",
                self.internal_stats,
                Access(Kind.TOPIC, "GET_STATS"),
                (*query, Query("metadata", bool, False, "with each ledger's metadata")),
                answer=dict[str, Any],
            ),
            Endpoint(
                "GET",
                _SUBSCRIPTION + "/holes",
                self.holes,
                Access(Kind.TOPIC, "GET_STATS"),
                (*query, Query("ledgerId", int, -1, "from this position on"), Query("entryId", int, 0)),
                answer=dict[str, Any],
            ),
            Endpoint("DELETE", TOPIC + "/truncate", self.truncate, Access(Kind.TENANT_ADMIN), query),
        ]

    async def skip_all(self, request: Request) -> Response:
        """Passes over all messages of a subscription."""
        name = request.path_params["subscription"]
        await self._having(request, lambda topic: topic.operations.clear_backlog(name))
        return no_content()

    async def skip(self, request: Request) -> Response:
        """Passes over so many messages of a subscription."""
        topic, name = await self._one(request, "Skip messages on a partitioned topic is not allowed")
        await topic.operations.skip(name, request.path_params["count"])
        return no_content()

    async def expire(self, request: Request) -> Response:
        """Acknowledges older messages. 409 when there are none, as Apache answers impossible requests."""
        name, seconds = request.path_params["subscription"], request.path_params["seconds"]

        async def expire(topic: Topic) -> None:
            if not topic.operations.backlog_entries(name):
                raise Refusal(409, _nothing_to_expire(request))
            await topic.operations.expire_older_than(name, seconds)

        await self._having(request, expire)
        return no_content()

    async def expire_through(self, request: Request) -> Response:
        """Acknowledges the messages up to and including one."""
        topic, name = await self._one(request, "Expire message at position is not supported for partitioned-topic")
        place = read_place(await read_json(request))
        if not topic.operations.backlog_entries(name):
            raise Refusal(409, _nothing_to_expire(request))
        position, _ = await first_position(topic, place)
        await topic.operations.expire_through(name, position)
        return no_content()

    async def expire_all(self, request: Request) -> Response:
        """Acknowledges older messages, on every subscription but compaction's own."""

        async def expire(topic: Topic) -> None:
            async for name in in_slices(topic.operations.durable_subscription_names()):
                await topic.operations.expire_older_than(name, request.path_params["seconds"])

        await self._parts.do(request, expire)
        return no_content()

    async def reset_to_time(self, request: Request) -> Response:
        """Goes back, or on, to the first message published then or later."""
        name, timestamp = request.path_params["subscription"], request.path_params["timestamp"]
        await self._having(request, lambda topic: topic.operations.reset_to_time(name, timestamp))
        return no_content()

    async def reset(self, request: Request) -> Response:
        """Goes back, or on, to a message."""
        topic, name = await self._one(request, "Reset-cursor at position is not allowed for partitioned-topic")
        place = read_place(await read_json(request))
        await topic.operations.reset(name, *await first_position(topic, place))
        return no_content()

    async def peek(self, request: Request) -> Response:
        """Answers with the message that is so many from the first that is not acknowledged."""
        topic, name = await self._one(request, "Peek messages on a partitioned topic is not allowed")
        number = request.path_params["number"]
        run = await topic.operations.peek(name, number) if number > 0 else None
        if run is None:
            raise Refusal(404, "Message not found")
        return message_answer(run, topic)

    async def analyze(self, request: Request) -> Response:
        """Counts the backlog of a subscription by reading it."""
        topic, name = await self._one(request, "Analyze backlog on a partitioned topic is not allowed")
        body = await read_json(request)
        found = await topic.operations.analyze_backlog(name, None if body is None else read_place(body).position)
        counts = {f"filter{word}Entries": 0 for word in ("Rejected", "Rescheduled")}
        counts |= {f"filter{word}Messages": 0 for word in ("Rejected", "Rescheduled")}
        counts |= {"filterAcceptedEntries": found.entries, "filterAcceptedMessages": found.messages}
        return json_answer(
            {
                "entries": found.entries,
                "messages": found.messages,
                "markerMessages": found.markers,
                "aborted": not found.is_whole,
                "firstMessageId": None if found.first is None else str(found.first),
                "lastMessageId": None if found.last is None else str(found.last),
                **counts,
            }
        )

    async def message(self, request: Request) -> Response:
        """Answers with one message."""
        topic = await self._whole(topic_of(request), "GetMessageById is not allowed on partitioned-topic")
        run = await topic.operations.read(Position(request.path_params["ledger"], request.path_params["entry"]))
        if run is None:
            raise Refusal(404, "Message id not found")
        return message_answer(run, topic)

    async def message_id(self, request: Request) -> Response:
        """Tells the id of the first message published then or later; else of the last one there is."""
        name = topic_of(request)
        topic = await self._whole(name, "Get message ID by timestamp on a partitioned topic is not allowed")
        position = await topic.operations.first_published_at_or_after(request.path_params["timestamp"])
        found = topic.operations.log.last_confirmed if position == LATEST else position
        return json_answer(message_id_json(found, name.partition_index))

    async def message_id_by_index(self, request: Request) -> Response:
        """Tells the entry that holds the message of an index (PIP-415); a subscription that is reset to it begins there."""
        name = topic_of(request)
        what = "Get message id by index on partitioned topic is not allowed, please use do it on specific topic partition"
        topic = await self._whole(name, what)
        text = request.query_params.get("index", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise Refusal(404, f"Invalid message index: {text or None}")
        try:
            found = await topic.operations.first_with_index_at_or_after(int(text))
        except BrokerError as error:
            if error.code is ServerError.NOT_ALLOWED:
                raise Refusal(412, error.message) from error
            raise
        if found is None:
            raise Refusal(404, f"Message not found for index {text}")
        return json_answer(message_id_json(found, name.partition_index))

    async def internal_stats(self, request: Request) -> Response:
        """Tells the ledgers of a topic and the places of its cursors."""
        name = topic_of(request)
        topic = await self._whole(name, "Internal stats are of partitions: ask for one of them")
        if not name.is_persistent:
            return json_answer(unstored_stats_json(topic.operations.subscription_names()))
        compacted, schemas = await topic.upkeep.compacted_ledger(), await self._schemas.ledgers(name)
        told = topic.stats_in_slices()
        stats = await internal_stats_json(topic.operations.log, compacted, (await told).subscriptions, schemas)
        if request.query_params.get("metadata") == "true":
            ids = [ledger["ledgerId"] for ledger in stats["ledgers"]]
            texts = await ledger_metadata_texts(self._catalogue.store, ids)
            for ledger in stats["ledgers"]:
                if ledger["ledgerId"] in texts:
                    ledger["metadata"] = texts[ledger["ledgerId"]]
        return json_answer(stats)

    async def holes(self, request: Request) -> Response:
        """Lists all acknowledgements of a subscription from a position on, a page at a time. Not Apache's."""
        topic, subscription = await self._one(request, "Holes are of partitions: ask for one of them")
        log, query = topic.operations.log, request.state.query
        cursor = log.cursors.get(encode_name(subscription))
        if cursor is None:
            raise Refusal(404, f"Subscription {subscription} is not durable")
        return json_answer(await hole_page(cursor, log.ledgers(), Position(query["ledgerId"], query["entryId"])))

    async def truncate(self, request: Request) -> Response:
        """Lets go of everything that is stored of a topic."""
        await self._parts.do(request, lambda topic: topic.operations.truncate())
        return no_content()

    async def trim(self, request: Request) -> Response:
        """Deletes the ledgers that no cursor and no policy needs."""
        await self._parts.do(request, lambda topic: topic.trim())
        return nothing()

    async def terminate(self, request: Request) -> Response:
        """Terminates a topic, and returns the id of its last message."""
        name = topic_of(request)
        _refuse_for_system_topics(name)
        topic = await self._whole(name, "Termination of a partitioned topic is not allowed")
        await topic.terminate()
        return json_answer(last_message_id_json(topic.operations.log.last_confirmed, name.partition_index))

    async def terminate_partitions(self, request: Request) -> Response:
        """Terminates each partition, and returns their last messages by the index of the partition."""
        name = topic_of(request)
        _refuse_for_system_topics(name)
        if not (await self._catalogue.partitioned_topics.get(name)).partitions:
            reason = "Termination of a non-partitioned topic is not allowed using partitioned-terminate"
            raise Refusal(405, f"{reason}, please use terminate commands")

        async def end(topic: Topic) -> dict[str, int]:
            await topic.terminate()
            return last_message_id_json(topic.operations.log.last_confirmed, TopicName.parse(topic.name).partition_index)

        ended = await self._parts.do(request, end, tail="terminate")
        return json_answer({str(last["partitionIndex"]): last for last in ended})

    # whose place

    async def _whole(self, name: TopicName, otherwise: str) -> Topic:
        if (await self._catalogue.partitioned_topics.get(name)).partitions:
            raise Refusal(405, otherwise)
        return await self._lifecycle.topic(name, may_create=False)

    async def _having(self, request: Request, work: Callable[[Topic], Awaitable[object]]) -> None:
        """Does the work on the topic, or on those of its partitions that have the subscription."""
        await self._parts.do(request, where_subscribed(request, work))

    async def _one(self, request: Request, otherwise: str) -> tuple[Topic, str]:
        name, subscription = topic_of(request), request.path_params["subscription"]
        topic = await self._whole(name, otherwise)
        if not topic.operations.has_subscription(subscription):
            raise Refusal(404, f"Subscription {subscription} not found for topic {name}")
        return topic, subscription


def _nothing_to_expire(request: Request) -> str:
    params = request.path_params
    return (
        f"Expire message by timestamp is issued on topic {topic_of(request)} for subscription {params['subscription']} due to"
        " ongoing message expiration not finished or subscription almost catch up."
    )


def _refuse_for_system_topics(name: TopicName) -> None:
    """Policies and transactions of a namespace whose system topic was terminated could not be written any more."""
    if name.is_system:
        raise Refusal(405, "Termination of a system topic is not allowed")
