"""A process with managed ledgers over fakes that outlive it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from managed_ledger.contract import EARLIEST, ManagedLedger
from managed_ledger.factory import ManagedLedgerFactory
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from managed_ledger.settings import ManagedLedgerSettings
from metadata.memory import MemoryStore, SharedTree
from metadata.store import MUST_NOT_EXIST, Stat, Versioned
from tests.simulation import worlds
from wire.position import Position

from .fake_ledgers import FakeLedgers, FakeLedgerStore, batch, payloads

NAME = "public/default/persistent/topic"
MANY = 1 << 30
NO_NODE = Versioned(b"", Stat("", MUST_NOT_EXIST, 0, 0))


class FakeClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


def small(**changes: Any) -> ManagedLedgerSettings:
    """Settings with ledgers of ten entries that roll over at once, and are kept for ever unless asked otherwise."""
    fields: dict[str, Any] = {
        "managed_ledger_max_entries_per_ledger": 10,
        "managed_ledger_min_ledger_rollover_time_minutes": 0,
        "managed_ledger_default_mark_delete_rate_limit": 1000.0,
        "default_retention_time_in_minutes": -1,
        "default_retention_size_in_mb": -1,
        **changes,
    }
    return ManagedLedgerSettings(**fields)


def trimming(**changes: Any) -> ManagedLedgerSettings:
    return small(default_retention_time_in_minutes=0, default_retention_size_in_mb=0, **changes)


class World:
    """Durable state, and one process on it. `restart` kills that process and starts another."""

    def __init__(self, settings: ManagedLedgerSettings | None = None, step_s: float = 0.0) -> None:
        self.settings = settings or small()
        self.clock = FakeClock()
        self.tree = SharedTree()
        self.shared = FakeLedgers(step_s)
        self.start()

    def start(self) -> None:
        self.ledger_store = FakeLedgerStore(self.shared)
        self.store = MemoryStore(self.clock, self.tree, alone=False)
        self.ledgers = self.factory()

    def factory(self) -> ManagedLedgerFactory:
        return ManagedLedgerFactory(self.ledger_store, self.store, self.settings, self.clock)

    def slow_store(self) -> MemoryStore:
        """Each write takes effect at once and is answered three milliseconds later."""
        return MemoryStore(self.clock, self.tree, alone=False, answer_delay=lambda: 0.003)

    async def kill(self) -> None:
        """Kill the process as kill -9 does: nothing of it takes effect any more."""
        self.ledger_store.is_dead = True
        await self.store.close()

    async def restart(self) -> None:
        await self.kill()
        self.start()

    async def open(self, name: str = NAME) -> StoredManagedLedger:
        ledger = await self.ledgers.open(name)
        assert isinstance(ledger, StoredManagedLedger)
        return ledger

    async def reopen(self) -> StoredManagedLedger:
        await self.restart()
        return await self.open()


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


async def append(ledger: ManagedLedger, *texts: bytes) -> Position:
    """The position of the last of them."""
    run = await ledger.append(batch(*texts))
    return Position(run.ledger_id, run.last_entry_id)


async def append_each(ledger: ManagedLedger, count: int, first: int = 0) -> list[Position]:
    runs = await asyncio.gather(*(ledger.append(batch(b"%d" % number)) for number in range(first, first + count)))
    return [Position(run.ledger_id, run.first_entry_id) for run in runs]


async def read_all(
    ledger: ManagedLedger, position: Position = EARLIEST, entries_max: int = 100, bytes_max: int = MANY
) -> list[bytes]:
    found: list[bytes] = []
    while True:
        run = await ledger.read(position, entries_max, bytes_max)
        if run is None:
            return found
        found += payloads(run)
        position = Position(run.ledger_id, run.last_entry_id + 1)


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    """Run in virtual time, so that a wait costs nothing and always ends the same way."""
    return worlds.run(lambda _: asyncio.wait_for(scenario, 10_000))
