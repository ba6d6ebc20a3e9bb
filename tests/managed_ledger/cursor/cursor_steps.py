"""Steps that the scenarios of cursors share."""

from managed_ledger.contract import EARLIEST, ManagedCursor
from managed_ledger.cursor.state import CursorNode, decode_node
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.position import Position

from ..ledger_world import NAME, World, append_each


async def node(world: World, name: str = "sub") -> CursorNode:
    found = await world.store.get(f"/managed-ledgers/{NAME}/{name}")
    assert found is not None
    return decode_node(name, found.value)


async def with_cursor(world: World, entries: int) -> tuple[StoredManagedLedger, ManagedCursor, list[Position]]:
    ledger = await world.open()
    cursor = await ledger.open_cursor("sub", EARLIEST)
    return ledger, cursor, await append_each(ledger, entries)


def cursor_ledgers(world: World) -> list[int]:
    return [ledger.ledger_id for ledger in world.shared.ledgers.values() if "pulsar/cursor" in ledger.custom_metadata]
