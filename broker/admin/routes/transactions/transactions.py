"""Routes for transaction coordinators (Apache: v3 Transactions, TransactionsBase). Owns nothing.

Paths, members and reasons as there. Super-users alone may ask: answers name topics of all tenants (Apache answers every
authenticated role). The role that opened a transaction may ask for it, too. `timeoutAt` is the time that it may be open, as
there, not a moment.
"""

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from wire.transactions import TxnAction, TxnId

from ....errors import BrokerError, ServerError
from ....security.authorization.needs import Kind, Need
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicElsewhere
from ....service.lookup import Lookup
from ....transaction.coordinator_driver import Coordinator
from ....transaction.coordinators import ASSIGN, Coordinators
from ....transaction.machine import Transaction
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.elsewhere import ask_json
from ...rest.endpoints import AUTHENTICATED, Endpoint, Query
from ...stats.internal_stats import internal_stats_json

_ROOT = "/admin/v3/transactions"
_DISABLED = "This Broker is not configured with transactionCoordinatorEnabled=true."
COORDINATOR_MAX = (1 << 31) - 1


class TransactionRoutes:
    """The handlers; one instance per server. `coordinators`: None where there are no transactions."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, coordinators: Coordinators | None) -> None:
        self._catalogue, self._lookup, self._coordinators = catalogue, lookup, coordinators

    def routes(self) -> list[Endpoint]:
        one = (Query("coordinatorId", int, description="The coordinator of this number alone."),)
        ids = "/{mostSigBits:int}/{leastSigBits:int}"
        metadata = (Query("metadata", bool, False, "Without effect: metadata are always shown."),)
        answer = dict[str, Any]
        return [
            Endpoint("GET", _ROOT + "/coordinators", self.all, answer=list[Any]),
            Endpoint("GET", _ROOT + "/coordinatorStats", self.stats, query=one, answer=answer),
            Endpoint("GET", _ROOT + "/transactionMetadata" + ids, self.metadata, AUTHENTICATED, answer=answer),
            Endpoint("GET", _ROOT + "/slowTransactions/{timeout:int}", self.slow, query=one, answer=answer),
            Endpoint(
                "GET", _ROOT + "/coordinatorInternalStats/{coordinatorId:int}", self.internal, query=metadata, answer=answer
            ),
            Endpoint("POST", _ROOT + "/abortTransaction" + ids, self.abort),
            Endpoint("POST", _ROOT + "/transactionCoordinator/replicas", self.scale, body=int),
        ]

    async def all(self, request: Request) -> Response:
        """Every coordinator of the cluster, and which broker it is at."""
        self._require_enabled()
        found = []
        for number in range(await self._count()):
            address = (await self._lookup.find(ASSIGN.partition(number))).address
            found.append({"id": number, "brokerServiceUrl": address.broker_url or address.broker_url_tls})
        return json_answer(found)

    async def stats(self, request: Request) -> Response:
        """Tells the counts of one coordinator, or of all by number."""
        self._require_enabled()
        asked = _number(request)
        if asked is not None:
            return json_answer(_stats(self._here(asked)))
        found: dict[str, Any] = {}
        for number in range(await self._count()):
            told = await self._of(number, "coordinatorStats", _stats)
            if told is not None:
                found[str(number)] = told
        return json_answer(found)

    async def slow(self, request: Request) -> Response:
        """Transactions that may be open for longer than so many milliseconds, by id."""
        self._require_enabled()
        timeout_ms, asked = request.path_params["timeout"], _number(request)
        if asked is not None:
            return json_answer(_slow(self._here(asked), timeout_ms))
        found: dict[str, Any] = {}
        for number in range(await self._count()):
            path = f"slowTransactions/{timeout_ms}"
            found |= await self._of(number, path, lambda each: _slow(each, timeout_ms)) or {}
        return json_answer(found)

    async def metadata(self, request: Request) -> Response:
        """One transaction that has not ended."""
        self._require_enabled()
        txn_id = _txn_id(request)
        coordinator = self._here(txn_id.most)
        try:
            found = coordinator.machine.get(txn_id.least)
        except BrokerError as absent:
            raise Refusal(404, absent.message) from absent
        await _require_owner(request, found.owner)
        return json_answer(_metadata(coordinator, found))

    async def internal(self, request: Request) -> Response:
        """The log of a coordinator: its ledgers and cursor."""
        self._require_enabled()
        log = self._here(request.path_params["coordinatorId"]).log.ledger
        told = {"managedLedgerName": log.name, "managedLedgerInternalStats": await internal_stats_json(log)}
        return json_answer({"transactionLogStats": told})

    async def abort(self, request: Request) -> Response:
        """Aborts an open transaction of any role."""
        self._require_enabled()
        txn_id = _txn_id(request)
        try:
            await self._here(txn_id.most).end(txn_id.least, TxnAction.ABORT)
        except BrokerError as refused:
            status = {ServerError.TRANSACTION_NOT_FOUND: 404, ServerError.INVALID_TXN_STATUS: 409}.get(refused.code)
            if status is None:
                raise
            raise Refusal(status, refused.message) from refused
        return no_content()

    async def scale(self, request: Request) -> Response:
        """Have more coordinators; there cannot be fewer."""
        self._require_enabled()
        if request.state.body <= await self._count():
            raise Refusal(
                406, "Number of transaction coordinators should be more than the current number of transaction coordinator"
            )
        await self._catalogue.partitioned_topics.update(ASSIGN, request.state.body)
        return no_content()

    # ---- Within

    def _require_enabled(self) -> Coordinators:
        if self._coordinators is None:
            raise Refusal(503, _DISABLED)
        return self._coordinators

    async def _count(self) -> int:
        found = (await self._catalogue.partitioned_topics.get(ASSIGN)).partitions
        if not found:
            raise Refusal(404, "Transaction coordinator not found")
        return found

    def _here(self, number: int) -> Coordinator:
        """TopicElsewhere, which is sent on to the owner."""
        if number > COORDINATOR_MAX:
            raise Refusal(404, f"Transaction coordinator not found! coordinator id : {number}")
        topic = ASSIGN.partition(number)
        if not self._lookup.owners.serves(topic):
            raise TopicElsewhere(str(topic), self._lookup.advertised.http_url)
        try:
            return self._require_enabled().get(number)
        except BrokerError as absent:
            raise Refusal(404, f"Transaction coordinator not found! coordinator id : {number}") from absent

    async def _of(self, number: int, path: str, here: Any) -> Any:
        """Returns the answer of a coordinator, wherever it is; None: it is loaded nowhere."""
        found = self._require_enabled().all.get(number)
        if found is not None and not found.has_ended:
            return here(found)
        where = await self._lookup.find(ASSIGN.partition(number))
        if where.address == self._lookup.advertised:
            return None
        asked = f"{_ROOT}/{path}?{urlencode({'coordinatorId': number})}"
        return await ask_json(self._lookup.neighbours, where.address, asked)


async def _require_owner(request: Request, owner: str | None) -> None:
    """The owner, or a super-user; any caller if an unauthenticated client opened the transaction."""
    may = getattr(request.state, "may", None)  # present where a permission is checked
    if may is None or owner is None or request.state.caller.principal == owner:
        return
    if not await may(Need(Kind.SUPER_USER)):
        raise Refusal(401, f"{request.state.caller} is neither the owner of the transaction nor a super-user")


def _number(request: Request) -> int | None:
    text = request.query_params.get("coordinatorId")
    return None if text is None else int(text)


def _txn_id(request: Request) -> TxnId:
    return TxnId(request.path_params["mostSigBits"], request.path_params["leastSigBits"])


def _stats(coordinator: Coordinator) -> dict[str, Any]:
    machine = coordinator.machine
    return {
        "leastSigBits": machine.last_sequence,
        "lowWaterMark": machine.low_water_mark,
        "state": "Ready",
        "ongoingTxnSize": machine.active_count,
        "recoverStartTime": coordinator.recover_start_ms,
        "recoverEndTime": coordinator.recover_end_ms,
    }


def _slow(coordinator: Coordinator, timeout_ms: int) -> dict[str, Any]:
    return {str(TxnId(coordinator.id, each.least)): _metadata(coordinator, each) for each in coordinator.slow(timeout_ms)}


def _metadata(coordinator: Coordinator, transaction: Transaction) -> dict[str, Any]:
    """Returns the metadata of a transaction; the routes of each participant show the participant's part."""
    acked: dict[str, dict[str, Any]] = {}
    for topic, name in sorted(transaction.subscriptions):
        acked.setdefault(topic, {})[name] = {}
    return {
        "txnId": str(TxnId(coordinator.id, transaction.least)),
        "status": transaction.status.name,
        "openTimestamp": transaction.start_ms,
        "timeoutAt": transaction.timeout_ms,
        "owner": transaction.owner,
        "producedPartitions": {topic: {} for topic in sorted(transaction.partitions)},
        "ackedPartitions": acked,
    }
