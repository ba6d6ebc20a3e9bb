"""Routes for statistics of transactions on topics and subscriptions (Apache: v3 Transactions). Owns nothing.

Paths and members as there. Super-users alone may ask, as for coordinators.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from wire.transactions import TxnId

from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....topic.contract import Topic
from ....topic.statistics.transaction_facts import SegmentFacts
from ...rest.answers import Refusal, json_answer
from ...rest.endpoints import Endpoint, Query
from ...rest.names import topic_of

_ROOT = "/admin/v3/transactions"
_TOPIC = "/{tenant}/{namespace}/{topic}"
_IDS = "/{mostSigBits:int}/{leastSigBits:int}"
_DISABLED = "This Broker is not configured with transactionCoordinatorEnabled=true."
_MARKS = Query("lowWaterMarks", bool, False, "With the coordinators' marks.")
_SEGMENTS = Query("segmentStats", bool, False, "With the segments of aborted transactions.")


class TransactionStatRoutes:
    """The handlers; one instance per server."""

    def __init__(self, lifecycle: TopicLifecycle, *, is_enabled: bool) -> None:
        self._lifecycle, self._is_enabled = lifecycle, is_enabled

    def routes(self) -> list[Endpoint]:
        answer = dict[str, Any]
        sub = _TOPIC + "/{subName}"
        return [
            Endpoint("GET", f"{_ROOT}/transactionBufferStats{_TOPIC}", self.buffer, query=(_MARKS, _SEGMENTS), answer=answer),
            Endpoint("GET", f"{_ROOT}/transactionInBufferStats{_TOPIC}{_IDS}", self.in_buffer, answer=answer),
            Endpoint("GET", f"{_ROOT}/pendingAckStats{sub}", self.pending, query=(_MARKS,), answer=answer),
            Endpoint("GET", f"{_ROOT}/transactionInPendingAckStats{sub}{_IDS}", self.in_pending, answer=answer),
        ]

    async def buffer(self, request: Request) -> Response:
        """Tells the transactions of a topic."""
        facts = (await self._topic(request)).transaction_buffer()
        query = request.state.query
        told: dict[str, Any] = {
            "state": "Ready" if facts.is_used else "NoSnapshot",
            "maxReadPosition": facts.max_read_position,
            "lastSnapshotTimestamps": facts.last_snapshot_ms,
            "lowWaterMarks": _marks(facts.low_water_marks) if query["lowWaterMarks"] else None,
            "ongoingTxnSize": facts.open_count,
            "recoverStartTime": facts.recovery_ms[0],
            "recoverEndTime": facts.recovery_ms[1],
            "totalAbortedTransactions": facts.aborted_count,
            "snapshotType": "Segment" if facts.is_segmented else "Single",
            "segmentsStats": _segments(facts.segments, each=query["segmentStats"]) if facts.is_segmented else None,
        }
        return json_answer(told)

    async def in_buffer(self, request: Request) -> Response:
        """Tells one transaction on a topic."""
        facts = (await self._topic(request)).transaction_in_buffer(_txn_id(request))
        return json_answer({"startPosition": facts.start_position, "aborted": facts.is_aborted})

    async def pending(self, request: Request) -> Response:
        """Tells the acknowledgements of a subscription in transactions."""
        name = request.path_params["subName"]
        facts = await (await self._topic(request)).pending_acks(name)
        if facts is None:
            raise Refusal(404, "Subscription not found")
        return json_answer(
            {
                "state": "Ready" if facts.log is not None else "None",
                "lowWaterMarks": _marks(facts.low_water_marks) if request.state.query["lowWaterMarks"] else None,
                "ongoingTxnSize": facts.open_count,
                "recoverStartTime": facts.recovery_ms[0],
                "recoverEndTime": facts.recovery_ms[1],
            }
        )

    async def in_pending(self, request: Request) -> Response:
        """Tells one transaction on a subscription."""
        name = request.path_params["subName"]
        facts = await (await self._topic(request)).in_pending_acks(name, _txn_id(request))
        if facts is None:
            raise Refusal(404, "Subscription not found")
        return json_answer({"cumulativeAckPosition": facts.cumulative_position})

    async def _topic(self, request: Request) -> Topic:
        if not self._is_enabled:
            raise Refusal(503, _DISABLED)
        return await self._lifecycle.topic(topic_of(request), may_create=False)


def _txn_id(request: Request) -> TxnId:
    return TxnId(request.path_params["mostSigBits"], request.path_params["leastSigBits"])


def _marks(marks: Any) -> dict[str, int]:
    return {str(coordinator): mark for coordinator, mark in marks.items()}


def _segments(facts: SegmentFacts, *, each: bool) -> dict[str, Any]:
    stored = [{"lastTxnID": txn_id, "persistentPosition": position} for txn_id, position in facts.stored]
    return {
        "segmentsSize": len(facts.stored),
        "currentSegmentCapacity": facts.capacity,
        "unsealedAbortTxnIDSize": facts.loose_count,
        "segmentStats": stored if each else None,
        "lastTookSnapshotSegmentTimestamp": facts.last_stored_ms,
    }
