"""Names that a broker gives to producers."""

import asyncio

import pytest

from broker.errors import BrokerError, ServerError
from broker.service.producer_names import ProducerNames
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock


def test_names_are_unique_over_brokers_and_restarts_on_one_store() -> None:
    async def scenario() -> list[str]:

        shared = SharedTree()
        found = []
        for _ in range(3):
            names = ProducerNames(MemoryStore(RealClock(), shared, alone=False), "west")
            await names.open(1)
            found += [names.new(), names.new()]
        return found

    found = asyncio.run(scenario())
    assert len(set(found)) == 6
    assert all(name.startswith("west-") for name in found)


def test_before_it_is_open_the_broker_is_starting() -> None:
    async def scenario() -> None:

        names = ProducerNames(MemoryStore(RealClock()), "west")
        assert not names.are_open
        with pytest.raises(BrokerError) as refused:
            names.new()
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    asyncio.run(scenario())
