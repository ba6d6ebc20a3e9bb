"""Routes that show the data of transactions beside a topic: snapshots, pending-ack logs, one message of those (v3
Transactions).

Owns nothing. Paths, members and statuses as Apache's; a topic of snapshots that is served elsewhere is asked for there.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from wire.position import Position

from ....errors import BrokerError, ServerError
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import NamespaceName, TopicName
from ....topic.contract import Topic
from ....transaction.snapshots.schemas import Kind
from ...rest.answers import Refusal, json_answer
from ...rest.elsewhere import ask_json
from ...rest.endpoints import Endpoint, Query
from ...rest.names import topic_of
from ...stats.internal_stats import internal_stats_json

_ROOT = "/admin/v3/transactions"
_TOPIC = "/{tenant}/{namespace}/{topic}"
_DISABLED = "This Broker is not configured with transactionCoordinatorEnabled=true."
_METADATA = Query("metadata", bool, False, "Without effect: metadata are always shown.")
_BATCH_INDEX = Query("batchIndex", int, description="Index of one message of a batch.")
_POSITION_MAX = (1 << 63) - 1


class TransactionInternalRoutes:
    """The handlers; one instance per server."""

    def __init__(self, lookup: Lookup, lifecycle: TopicLifecycle, *, is_enabled: bool) -> None:
        self._lookup, self._lifecycle, self._is_enabled = lookup, lifecycle, is_enabled

    def routes(self) -> list[Endpoint]:
        answer, sub = dict[str, Any], _TOPIC + "/{subName}"
        position = f"{_ROOT}/positionStatsInPendingAck{sub}/{{ledgerId:int}}/{{entryId:int}}"
        return [
            Endpoint("GET", f"{_ROOT}/transactionBufferInternalStats{_TOPIC}", self.buffer, query=(_METADATA,), answer=answer),
            Endpoint("GET", f"{_ROOT}/pendingAckInternalStats{sub}", self.pending, query=(_METADATA,), answer=answer),
            Endpoint("GET", position, self.position, query=(_BATCH_INDEX,), answer=answer),
        ]

    async def buffer(self, request: Request) -> Response:
        """The topics where a topic's snapshots are: their ledgers and cursors."""
        facts = (await self._topic(request)).transaction_buffer()
        namespace = topic_of(request).namespace
        if facts.is_segmented:
            told = {
                "snapshotType": "Segment",
                "singleSnapshotSystemTopicInternalStats": None,
                "segmentInternalStats": await self._internal(namespace, Kind.SEGMENTS),
                "segmentIndexInternalStats": await self._internal(namespace, Kind.INDEXES),
            }
        else:
            told = {
                "snapshotType": "Single",
                "singleSnapshotSystemTopicInternalStats": await self._internal(namespace, Kind.SINGLE),
                "segmentInternalStats": None,
                "segmentIndexInternalStats": None,
            }
        return json_answer(told)

    async def pending(self, request: Request) -> Response:
        """The log of a subscription's acknowledgements in transactions."""
        facts = await (await self._topic(request)).pending_acks(request.path_params["subName"])
        if facts is None:
            raise Refusal(404, "Subscription not found")
        if facts.log is None:
            raise Refusal(503, "Pending ack have not init success!")
        return json_answer({"pendingAckLogStats": _log(facts.log.name, await internal_stats_json(facts.log))})

    async def position(self, request: Request) -> Response:
        """Whether a message is acknowledged in a transaction that has not ended."""
        ledger_id, entry_id = request.path_params["ledgerId"], request.path_params["entryId"]
        if max(ledger_id, entry_id) > _POSITION_MAX:
            raise Refusal(404, "There is no such position: numbers have 63 bits")
        text = request.query_params.get("batchIndex")
        index = None if text is None else int(text)
        if index is not None and index < 0:
            raise Refusal(400, "batchIndex: expected 0 or more")
        topic, name = await self._topic(request), request.path_params["subName"]
        found = await topic.place_in_pending_acks(name, Position(ledger_id, entry_id), index)
        if found is None:
            raise Refusal(404, "Subscription not found")
        return json_answer({"state": found.value})

    async def _topic(self, request: Request) -> Topic:
        if not self._is_enabled:
            raise Refusal(503, _DISABLED)
        return await self._lifecycle.topic(topic_of(request), may_create=False)

    async def _internal(self, namespace: NamespaceName, kind: Kind) -> dict[str, Any]:
        name = TopicName("persistent", namespace, kind.value, -1)
        where = await self._lookup.find(name)
        if where.address == self._lookup.advertised:
            told = await self._here(name)
        else:
            path = f"/admin/v2/persistent/{namespace}/{kind.value}/internalStats"
            told = await ask_json(self._lookup.neighbours, where.address, path)
        if told is None:
            raise Refusal(404, f"Topic not found {name}")
        return _log(kind.value, told)

    async def _here(self, name: TopicName) -> dict[str, Any] | None:
        try:
            topic = await self._lifecycle.topic(name, may_create=False)
        except BrokerError as error:
            if error.code is ServerError.TOPIC_NOT_FOUND:
                return None
            raise
        compacted, told = await topic.upkeep.compacted_ledger(), topic.stats_in_slices()
        return await internal_stats_json(topic.operations.log, compacted, (await told).subscriptions)


def _log(name: str, told: dict[str, Any]) -> dict[str, Any]:
    return {"managedLedgerName": name, "managedLedgerInternalStats": told}
