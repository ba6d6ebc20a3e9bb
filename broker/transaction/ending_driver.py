"""Sends the end of a transaction to every participant, until all have done it.

Owns one try at a time for each participant. No participant is asked before the decision is durable, and none is left out: one
that cannot be reached, or refuses, is asked again for as long as it takes (Apache: endTxnInTransactionBuffer, which gives up at
errors that it does not know, until the coordinator is loaded again). The exception is TRANSACTION_CONFLICT: a client that may
send END_TXN_ON_PARTITION had ended it the other way there, which cannot be undone. (Apache's topics answer success.)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ports.logs import line
from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from .contract import Participants
from .meters import EndingMeters
from .records import Participant, name_of

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 10.0
_LOGGED_AFTER = 3
"""Attempts before a line in the log; until then a participant may just be loaded or moved."""


@dataclass(slots=True)
class Ending:
    """End of a transaction, and the participants that have carried it out. `low_water_mark`: as it is when one is asked."""

    txn_id: TxnId
    action: TxnAction
    participants: Sequence[Participant]
    low_water_mark: Callable[[], int]
    refusals: dict[Participant, str] = field(default_factory=dict)
    """Last errors of the participants that have not done it yet."""
    against: list[Participant] = field(default_factory=list)
    """Participants that had ended it the other way before, and keep that."""

    def not_done(self) -> BrokerError:
        """Error for a caller that has waited long enough. The end will be done: the decision is stored."""
        end = "committed" if self.action is TxnAction.COMMIT else "aborted"
        text = f"Transaction {self.txn_id} will be {end}, but not all who took part have done it yet"
        first = next(iter(self.refusals.items()), None)
        if first is not None:
            text += f": {name_of(first[0])}: {first[1]}"
        return BrokerError(ServerError.SERVICE_NOT_READY, text)


class Endings:
    """Endings of all coordinators of a broker: `turns` bounds the number of requests at the same time."""

    def __init__(self, participants: Participants, requests_max: int, seconds_max: float) -> None:
        self._participants = participants
        self._turns = asyncio.Semaphore(requests_max)
        self._seconds_max = seconds_max
        self.meters = EndingMeters()

    async def end(self, ending: Ending) -> None:
        """Ends the transaction at all participants, but for those who are `against` it."""
        async with asyncio.TaskGroup() as group:
            for each in ending.participants:
                group.create_task(self._until_done(each, ending))

    async def _until_done(self, participant: Participant, ending: Ending) -> None:
        attempts, wait, where = 0, RETRY_SECONDS_MIN, name_of(participant)
        while True:
            refusal = await self._measured(participant, ending)
            if refusal is None or refusal.code is ServerError.TRANSACTION_CONFLICT:
                break
            ending.refusals[participant] = refusal.message
            attempts += 1
            if attempts == _LOGGED_AFTER:
                log.warning(line("a transaction cannot be ended yet", txn=ending.txn_id, where=where, reason=refusal))
            await asyncio.sleep(wait)
            wait = min(wait * 2, RETRY_SECONDS_MAX)
        ending.refusals.pop(participant, None)
        if refusal is not None:
            ending.against.append(participant)
            self.meters.contradicted += 1
            log.warning(line("transaction had ended the other way", txn=ending.txn_id, where=where, reason=refusal))

    async def _measured(self, participant: Participant, ending: Ending) -> BrokerError | None:
        loop = asyncio.get_running_loop()
        began, self.meters.pending = loop.time(), self.meters.pending + 1
        try:
            refusal = await self._answered(participant, ending)
        finally:
            self.meters.pending -= 1
        topic = participant if isinstance(participant, str) else participant.topic
        self.meters.asked(topic, ending.action, loop.time() - began, is_done=refusal is None)
        return refusal

    async def _answered(self, participant: Participant, ending: Ending) -> BrokerError | None:
        """None: it is done."""
        async with self._turns:
            try:
                async with asyncio.timeout(self._seconds_max):
                    await self._ask(participant, ending)
            except TimeoutError:
                return BrokerError(ServerError.SERVICE_NOT_READY, f"no answer within {self._seconds_max} s")
            except BrokerError as error:
                return error
        return None

    def _ask(self, participant: Participant, ending: Ending) -> Awaitable[None]:
        mark = ending.low_water_mark()
        if isinstance(participant, str):
            return self._participants.end_on_partition(participant, ending.txn_id, ending.action, mark)
        return self._participants.end_on_subscription(*participant, ending.txn_id, ending.action, mark)
