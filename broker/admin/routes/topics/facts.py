"""Routes for facts of one topic beside its stats: last message, size from a place on, metadata, single messages, and compaction
(PersistentTopics). Offloading does not exist here: 501.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from managed_ledger.contract import LATEST, LedgerFacts
from metadata.paths import encode_name
from ports.loop.slices import in_slices

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicElsewhere, TopicNotFound
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import TopicName
from ....service.topic_schemas import TopicSchemas
from ....topic.contract import Topic
from ....topic.statistics.compaction_stats import CompactionUnderWay
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.each_partition import EachPartition
from ...rest.elsewhere import ask
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import TOPIC, topic_of
from ...rest.positions import last_message_id_json, read_place
from ...stats.internal_info import info_json
from ...stats.internal_stats import internal_stats_json, unstored_stats_json
from .messages import message_answer

_AUTHORITATIVE = Query("authoritative", bool, False)
_EXAMINED = (_AUTHORITATIVE, Query("initialPosition", str, "latest"), Query("messagePosition", int, 1))


class TopicFactRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle, schemas: TopicSchemas) -> None:
        self._catalogue, self._lookup, self._lifecycle, self._schemas = catalogue, lookup, lifecycle, schemas
        self._parts = EachPartition(catalogue, lookup, lifecycle)
        self._store = catalogue.store

    def routes(self) -> list[Endpoint]:
        def needs(operation: str) -> Access:
            return Access(Kind.TOPIC, operation)

        compact, offload, plain = needs("COMPACT"), needs("OFFLOAD"), (_AUTHORITATIVE,)
        tenant, number = Access(Kind.TENANT_ADMIN), Any
        return [
            Endpoint(
                "GET", TOPIC + "/lastMessageId", self.last_message_id, needs("PEEK_MESSAGES"), plain, answer=dict[str, int]
            ),
            Endpoint(
                "PUT", TOPIC + "/backlogSize", self.backlog_size, needs("GET_BACKLOG_SIZE"), plain, body=Any, answer=number
            ),
            Endpoint("GET", TOPIC + "/backlog", self.backlog, needs("GET_BACKLOG_SIZE"), plain, answer=dict[str, Any]),
            Endpoint("GET", TOPIC + "/examinemessage", self.examine, needs("PEEK_MESSAGES"), _EXAMINED, answer=bytes),
            Endpoint("GET", TOPIC + "/internal-info", self.internal_info, tenant, plain, answer=dict[str, Any]),
            Endpoint(
                "GET",
                TOPIC + "/partitioned-internalStats",
                self.partitioned_internal_stats,
                needs("GET_STATS"),
                plain,
                answer=dict[str, Any],
            ),
            Endpoint("GET", TOPIC + "/compaction", self.compaction_status, compact, plain, answer=dict[str, str]),
            Endpoint("PUT", TOPIC + "/compaction", self.compact, compact, plain),
            Endpoint("GET", TOPIC + "/offload", self.no_offload, offload, plain),
            Endpoint("PUT", TOPIC + "/offload", self.no_offload, offload, plain),
            Endpoint(
                "POST",
                TOPIC + "/createMissedPartitions",
                self.create_missed_partitions,
                Access(Kind.NAMESPACE, "CREATE_TOPIC"),
            ),
        ]

    async def last_message_id(self, request: Request) -> Response:
        """Tells the id of the last message."""
        name = topic_of(request)
        if (await self._catalogue.partitioned_topics.get(name)).partitions:
            raise TopicNotFound(str(name))
        topic = await self._lifecycle.topic(name, may_create=False)
        return json_answer(last_message_id_json(topic.operations.log.last_confirmed, name.partition_index))

    async def backlog_size(self, request: Request) -> Response:
        """Returns the number of bytes from a message on, about."""
        topic = await self._whole(topic_of(request), "calculate backlog size is not allowed for partitioned-topic")
        position = read_place(request.state.body).position
        return json_answer(0 if position == LATEST else topic.operations.size_after(position))

    async def backlog(self, request: Request) -> Response:
        """Tells how large the log of a topic and each subscription's share of it are (PersistentOfflineTopicStats)."""
        name = topic_of(request)
        topic = await self._whole(name, "Backlog is of partitions: ask for one of them")
        log, subscriptions = topic.operations.log, dict((await topic.stats_in_slices()).subscriptions)
        backlogs = {sub: subscriptions.pop(sub).msg_backlog async for sub in in_slices(list(subscriptions))}
        return json_answer(
            {
                "storageSize": log.size_bytes,
                "totalMessages": log.entry_count,
                "messageBacklog": sum(backlogs.values()),
                "averageMessageSize": log.size_bytes / log.entry_count if log.entry_count else 0.0,
                "topicName": str(name),
                "dataLedgerDetails": [_ledger(each) for each in log.ledgers()],
                "cursorDetails": {sub: {"cursorBacklog": backlog} for sub, backlog in backlogs.items()},
            }
        )

    async def examine(self, request: Request) -> Response:
        """Answers with the message that is so many from the first or the last one."""
        what = "Examine messages on a partitioned topic is not allowed, please try examine message on specific topic partition"
        topic, query = await self._whole(topic_of(request), what), request.state.query
        is_early = query["initialPosition"] == "earliest"
        run = await topic.operations.examine(query["messagePosition"], from_earliest=is_early)
        if run is None:
            raise Refusal(412, "Could not examine messages due to the total message is zero")
        return message_answer(run, topic)

    async def internal_info(self, request: Request) -> Response:
        """Returns the metadata of a topic, or of its partitions, without loading it."""
        name = topic_of(request)
        partitions = (await self._catalogue.partitioned_topics.get(name)).partitions
        if not partitions:
            if not await self._catalogue.topic_exists(name):
                raise TopicNotFound(str(name))
            return json_answer(await info_json(self._store, name))
        parts = [name.partition(index) for index in range(partitions)]
        there = [part async for part in in_slices(parts) if await self._catalogue.topic_exists(part)]
        found = {str(part): await info_json(self._store, part) async for part in in_slices(there)}
        return json_answer({"version": 0, "partitions": found})

    async def partitioned_internal_stats(self, request: Request) -> Response:
        """Tells the internal stats of each partition, wherever it is served."""
        name = topic_of(request)
        found = await self._catalogue.partitioned_topics.get(name)
        if not found.partitions:
            raise Refusal(404, f"Partitioned Topic {name} not found")
        schemas = await self._schemas.ledgers(name)

        async def tell(topic: Topic) -> dict[str, Any]:
            if not name.is_persistent:
                return unstored_stats_json(topic.operations.subscription_names())
            compacted, told = await topic.upkeep.compacted_ledger(), topic.stats_in_slices()
            return await internal_stats_json(topic.operations.log, compacted, (await told).subscriptions, schemas)

        stats = await self._parts.ask(name, found.partitions, "internalStats", tell)
        return json_answer({"metadata": {"partitions": found.partitions, "deleted": False}, "partitions": stats})

    async def create_missed_partitions(self, request: Request) -> Response:
        """Makes the partitions that are missing of a partitioned topic."""
        name = topic_of(request)
        if not (await self._catalogue.partitioned_topics.get(name)).partitions:
            raise Refusal(404, f"Topic {name} does not exist")
        await self._catalogue.partitioned_topics.create_missed(name)
        return no_content()

    async def compact(self, request: Request) -> Response:
        """Begins to compact a topic, or each of its partitions, wherever it is served."""
        name = topic_of(request)
        found = await self._catalogue.partitioned_topics.get(name)
        for index in range(found.partitions):
            await self._compact_partition(name.partition(index))
        if not found.partitions:
            _compact(await self._lifecycle.topic(name, may_create=False))
        return no_content()

    async def _compact_partition(self, name: TopicName) -> None:
        if not await self._catalogue.topic_exists(name):
            return
        try:
            _compact(await self._lifecycle.topic(name, may_create=False))
        except TopicElsewhere:
            found = await self._lookup.find(name)
            path = f"/admin/v2/persistent/{name.namespace}/{encode_name(name.local_name)}/compaction"
            await ask(self._lookup.neighbours, found.address, "PUT", path)

    async def compaction_status(self, request: Request) -> Response:
        """Tells how the compaction of a topic stands (LongRunningProcessStatus)."""
        topic = await self._whole(topic_of(request), "Compaction is of partitions: ask for one of them")
        status = topic.upkeep.compaction_status
        return json_answer({"status": status.state.value, "lastError": status.error})

    async def no_offload(self, request: Request) -> Response:
        """Offloading is not there yet."""
        await self._require(topic_of(request))
        raise Refusal(501, "Ledgers are not offloaded yet")

    async def _require(self, name: TopicName) -> None:
        await self._catalogue.namespaces.require(name.namespace)
        partitions = (await self._catalogue.partitioned_topics.get(name)).partitions
        if not partitions and not await self._catalogue.topic_exists(name):
            raise TopicNotFound(str(name))

    async def _whole(self, name: TopicName, otherwise: str) -> Topic:
        if (await self._catalogue.partitioned_topics.get(name)).partitions:
            raise Refusal(405, otherwise)
        return await self._lifecycle.topic(name, may_create=False)


def _compact(topic: Topic) -> None:
    try:
        topic.upkeep.compact()
    except CompactionUnderWay as error:
        raise Refusal(409, error.message) from error


def _ledger(facts: LedgerFacts) -> dict[str, int]:
    return {
        "entries": facts.entries,
        "timestamp": facts.closed_at_ms,
        "size": facts.size_bytes,
        "ledgerId": facts.ledger_id,
    }
