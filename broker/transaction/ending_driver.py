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
from .meters import EndingMeters
from .records import TxnSubscription

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 10.0
_LOGGED_AFTER = 3
"""Attempts; before that somebody is just being loaded or moved."""

_Ask = Callable[[int], Awaitable[None]]
"""One who takes part, with the low-water mark."""


def _ask_now(ask: _Ask, low_water_mark: Callable[[], int]) -> Awaitable[None]:
    """With the mark as it is by then."""
    return ask(low_water_mark())


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
        partitions: list[str],
        subscriptions: list[TxnSubscription],
        low_water_mark: Callable[[], int],
    ) -> None:
        """When it returns all have ended it. Acknowledgements first, as Apache."""
        asked: list[tuple[str, str, _Ask]] = [
            (topic, name, partial(self._participants.end_on_subscription, topic, name, txn_id, action))
            for topic, name in subscriptions
        ]
        asked += [(topic, "", partial(self._participants.end_on_partition, topic, txn_id, action)) for topic in partitions]
        async with asyncio.TaskGroup() as group:
            for topic, name, ask in asked:
                now = partial(_ask_now, ask, low_water_mark)
                group.create_task(self._until_done(topic, name, txn_id, action, now))

    async def _until_done(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, ask: Callable[[], Awaitable[None]]
    ) -> None:
        attempts, wait = 0, RETRY_SECONDS_MIN
        while True:
            refusal = await self._asked(topic, action, ask)
            if refusal is None:
                return
            attempts += 1
            if attempts == _LOGGED_AFTER:
                where = f"{topic} {subscription}".rstrip()
                log.warning(line("a transaction cannot be ended yet", txn=txn_id, where=where, reason=refusal))
            await asyncio.sleep(wait)
            wait = min(wait * 2, RETRY_SECONDS_MAX)

    async def _asked(self, topic: str, action: TxnAction, ask: Callable[[], Awaitable[None]]) -> BrokerError | None:
        loop = asyncio.get_running_loop()
        began, self.meters.pending = loop.time(), self.meters.pending + 1
        try:
            refusal = await self._answered(ask)
        finally:
            self.meters.pending -= 1
        self.meters.asked(topic, action, loop.time() - began, is_done=refusal is None)
        return refusal

    async def _answered(self, ask: Callable[[], Awaitable[None]]) -> BrokerError | None:
        async with self._turns:
            try:
                async with asyncio.timeout(self._seconds_max):
                    await ask()
            except TimeoutError:
                return BrokerError(ServerError.SERVICE_NOT_READY, f"no answer within {self._seconds_max} s")
            except BrokerError as error:
                return error
        return None
