"""Tells everybody who took part in a transaction how it ends, until all have done it.

Owns one try at a time for each participant. Nobody is asked before it is durable how the transaction ends, and nobody is left
out: who cannot be reached, or refuses, is asked again for as long as it takes (Apache: endTxnInTransactionBuffer, which gives
up at errors that it does not know, until the coordinator is loaded again).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ports.logs import line
from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from .contract import Participants
from .meters import EndingMeters
from .records import TxnSubscription

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 10.0
_LOGGED_AFTER = 3
"""Attempts; before that somebody is just being loaded or moved."""


@dataclass(frozen=True, slots=True)
class _Participant:
    """A topic that the transaction published to, or a subscription on which it acknowledged."""

    topic: str
    subscription: str | None = None

    def __str__(self) -> str:
        return self.topic if self.subscription is None else f"{self.topic} {self.subscription}"


@dataclass(frozen=True, slots=True)
class _Ending:
    """What all of them are told. `low_water_mark`: as it is when one is asked."""

    txn_id: TxnId
    action: TxnAction
    low_water_mark: Callable[[], int]


class Endings:
    """Of all coordinators of a broker: `turns` bounds how many are asked at the same time."""

    def __init__(self, participants: Participants, requests_max: int, seconds_max: float) -> None:
        self._participants = participants
        self._turns = asyncio.Semaphore(requests_max)
        self._seconds_max = seconds_max
        self.meters = EndingMeters()

    async def end(
        self,
        txn_id: TxnId,
        action: TxnAction,
        partitions: Sequence[str],
        subscriptions: Sequence[TxnSubscription],
        low_water_mark: Callable[[], int],
    ) -> None:
        """When it returns all have ended it. Acknowledgements first, as Apache."""
        ending = _Ending(txn_id, action, low_water_mark)
        participants = [_Participant(topic, name) for topic, name in subscriptions]
        participants += [_Participant(topic) for topic in partitions]
        async with asyncio.TaskGroup() as group:
            for each in participants:
                group.create_task(self._until_done(each, ending))

    async def _until_done(self, participant: _Participant, ending: _Ending) -> None:
        attempts, wait = 0, RETRY_SECONDS_MIN
        while True:
            refusal = await self._measured(participant, ending)
            if refusal is None:
                return
            attempts += 1
            if attempts == _LOGGED_AFTER:
                log.warning(line("a transaction cannot be ended yet", txn=ending.txn_id, where=participant, reason=refusal))
            await asyncio.sleep(wait)
            wait = min(wait * 2, RETRY_SECONDS_MAX)

    async def _measured(self, participant: _Participant, ending: _Ending) -> BrokerError | None:
        loop = asyncio.get_running_loop()
        began, self.meters.pending = loop.time(), self.meters.pending + 1
        try:
            refusal = await self._answered(participant, ending)
        finally:
            self.meters.pending -= 1
        self.meters.asked(participant.topic, ending.action, loop.time() - began, is_done=refusal is None)
        return refusal

    async def _answered(self, participant: _Participant, ending: _Ending) -> BrokerError | None:
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

    def _ask(self, participant: _Participant, ending: _Ending) -> Awaitable[None]:
        topic, mark = participant.topic, ending.low_water_mark()
        if participant.subscription is None:
            return self._participants.end_on_partition(topic, ending.txn_id, ending.action, mark)
        return self._participants.end_on_subscription(topic, participant.subscription, ending.txn_id, ending.action, mark)
