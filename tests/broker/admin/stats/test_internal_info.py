"""internal-info: what metadata has of a topic's ledgers and cursors, as Apache Pulsar 4.0.8 tells it."""

import pytest

from broker.admin.rest.answers import Refusal
from broker.admin.stats.internal_info import info_json
from broker.service.errors import TopicNotFound
from broker.service.topic_name import TopicName
from managed_ledger.contract import EARLIEST
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.managed_ledger.ledger_world import World, append_each
from tests.simulation.worlds import run

TOPIC = TopicName.parse("persistent://t/n/x")
NODE = "/managed-ledgers/t/n/persistent/x"


def test_ledgers_and_cursors_are_told_as_apache_tells_them() -> None:
    """A cursor with a ledger of its own is told with the position from which that ledger began, one that was closed with its
    last."""

    async def scenario() -> None:
        world = World()
        ledger = await world.open(name=TOPIC.managed_ledger_name)
        positions = await append_each(ledger, 3)
        cursor = await ledger.open_cursor("sub", EARLIEST)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        found = await info_json(world.store, TOPIC)
        ledger_id = positions[0].ledger_id
        assert [each["ledgerId"] for each in found["ledgers"]] == [ledger_id]
        told = found["cursors"]["sub"]
        assert told["cursorsLedgerId"] >= 0
        assert told["markDelete"] == {"ledgerId": ledger_id, "entryId": positions[0].entry_id}
        cursor.acknowledge_cumulative(positions[1])
        await cursor.flush()
        assert (await info_json(world.store, TOPIC))["cursors"]["sub"]["markDelete"] == told["markDelete"]
        await ledger.close()
        closed = (await info_json(world.store, TOPIC))["cursors"]["sub"]
        assert (closed["cursorsLedgerId"], closed["markDelete"]["entryId"]) == (-1, positions[1].entry_id)
        assert {"version", "creationDate", "modificationDate"} <= closed.keys()

    run(lambda _: scenario())


def test_a_node_that_cannot_be_read_is_named() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        with pytest.raises(TopicNotFound):
            await info_json(store, TOPIC)
        await store.put(NODE, b"\xff")
        with pytest.raises(Refusal, match=f"{NODE} cannot be read"):
            await info_json(store, TOPIC)

    run(lambda _: scenario())
