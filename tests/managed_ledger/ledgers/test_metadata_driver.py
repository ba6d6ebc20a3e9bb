"""The node of a managed ledger: what waits for its deletion."""

import asyncio

from managed_ledger.ledgers.metadata_driver import LogMetadata
from managed_ledger.ledgers.sequence import LedgerSequence
from metadata.memory import MemoryStore

from ..ledger_world import NO_NODE, FakeClock


def test_a_ledger_deleted_while_the_node_is_written_is_not_deleted_again() -> None:
    """Found by seed 1175 of the standalone: the second deletion raised, and the checks after it were never made."""

    async def scenario() -> None:
        store = MemoryStore(FakeClock(), answer_delay=lambda: 0.001)
        metadata = LogMetadata(store, "t/n/persistent/x", NO_NODE, LedgerSequence())
        metadata.mark_deleting(5)
        await metadata.write()
        assert metadata.deletable == (5,)
        metadata.mark_deleting(6)
        writing = asyncio.ensure_future(metadata.write())
        await asyncio.sleep(0)
        metadata.deleted(5)
        await writing
        assert metadata.deletable == (6,)

    asyncio.run(scenario())
