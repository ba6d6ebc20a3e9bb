"""Tells everybody who took part in a transaction how it ends, until all have done it.

Owns one try at a time for each participant. Nobody is asked before it is durable how the transaction ends, and nobody is left
out: who cannot be reached, or refuses, is asked again for as long as it takes (Apache: endTxnInTransactionBuffer, which gives
up at errors that it does not know, until the coordinator is loaded again).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from ports.logs import line
from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from .contract import Participants
from .records import TxnSubscription

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 10.0
_LOGGED_AFTER = 3
"""Attempts; before that somebody is just being loaded or moved."""


class Endings:
    """Of all coordinators of a broker: `turns` bounds how many are asked at the same time."""

    def __init__(self, participants: Participants, requests_max: int, seconds_max: float) -> None:
        self._participants = participants
        self._turns = asyncio.Semaphore(requests_max)
        self._seconds_max = seconds_max

    async def end(
        self,
        txn_id: TxnId,
        action: TxnAction,
        partitions: list[str],
        subscriptions: list[TxnSubscription],
        low_water_mark: Callable[[], int],
    ) -> None:
        """When it returns all have ended it. Acknowledgements first, as Apache."""
        asked: list[tuple[str, Callable[[int], Awaitable[None]]]] = [
            (f"{topic} {name}", partial(self._participants.end_on_subscription, topic, name, txn_id, action))
            for topic, name in subscriptions
        ]
        asked += [(topic, partial(self._participants.end_on_partition, topic, txn_id, action)) for topic in partitions]
        async with asyncio.TaskGroup() as group:
            for name, ask in asked:
                group.create_task(self._until_done(name, txn_id, ask, low_water_mark))

    async def _until_done(
        self, name: str, txn_id: TxnId, ask: Callable[[int], Awaitable[None]], low_water_mark: Callable[[], int]
    ) -> None:
        attempts, wait = 0, RETRY_SECONDS_MIN
        while True:
            refusal = await self._asked(ask, low_water_mark)
            if refusal is None:
                return
            attempts += 1
            if attempts == _LOGGED_AFTER:
                log.warning(line("a transaction cannot be ended yet", txn=txn_id, where=name, reason=refusal))
            await asyncio.sleep(wait)
            wait = min(wait * 2, RETRY_SECONDS_MAX)

    async def _asked(self, ask: Callable[[int], Awaitable[None]], low_water_mark: Callable[[], int]) -> BrokerError | None:
        async with self._turns:
            try:
                async with asyncio.timeout(self._seconds_max):
                    await ask(low_water_mark())
            except TimeoutError:
                return BrokerError(ServerError.SERVICE_NOT_READY, f"no answer within {self._seconds_max} s")
            except BrokerError as error:
                return error
        return None
