"""A coordinator on a real managed ledger over ledgers in memory, that can be killed, with participants that write down."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from broker.errors import BrokerError, ServerError
from broker.transaction.coordinator_driver import Coordinator
from broker.transaction.ending_driver import Endings
from tests.managed_ledger.ledger_world import World, trimming
from wire.transactions import TxnAction, TxnId

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT
T = "persistent://public/default/t"


class LoopClock:
    """Wall clock that goes with the loop's time."""

    def now_ms(self) -> int:
        return 1_000_000 + int(asyncio.get_running_loop().time() * 1000)


class FakeParticipants:
    """They outlive brokers. A participant that heard of one end refuses the other for ever."""

    def __init__(self) -> None:
        self.ended: dict[tuple[str, TxnId], TxnAction] = {}
        self.asked: dict[tuple[str, TxnId], int] = defaultdict(int)
        self.marks: list[int] = []
        self.before: Callable[[str], Awaitable[None]] | None = None

    async def end_on_partition(self, topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        await self._end(topic, txn_id, action, low_water_mark)

    async def end_on_subscription(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int
    ) -> None:
        await self._end(f"{topic} {subscription}", txn_id, action, low_water_mark)

    async def _end(self, name: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        self.asked[name, txn_id] += 1
        self.marks.append(low_water_mark)
        if self.before is not None:
            await self.before(name)
        before = self.ended.setdefault((name, txn_id), action)
        assert before is action, f"{name}: {txn_id} was {before!r}, now {action!r}"


class CoordinatorWorld:
    """Coordinator 0 of brokers that come and go."""

    def __init__(self, step_s: float = 0.001, active_max: int = 0) -> None:
        self.storage = World(trimming(), step_s)
        self.participants = FakeParticipants()
        self.clock = LoopClock()
        self._active_max = active_max

    async def load(self) -> Coordinator:
        endings = Endings(self.participants, 100, 3.0)
        self.coordinator = await Coordinator.load(0, self.storage.ledgers, endings, self.clock, self._active_max)
        return self.coordinator

    async def kill(self) -> None:
        """Ends the broker like kill -9: its tasks end, and nothing that it does takes effect any more."""
        await self.storage.kill()
        self.coordinator._stop()

    async def restart(self) -> Coordinator:
        await self.kill()
        self.storage.start()
        return await self.load()


async def refusal(work: Awaitable[object]) -> ServerError:
    try:
        await work
    except BrokerError as error:
        return error.code
    raise AssertionError("it was done")
