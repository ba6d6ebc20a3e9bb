"""Of a topic that was deleted nothing is left, in memory or in metadata, whatever it was and whatever was done with it."""

import asyncio
import time
from pathlib import Path

import pytest

from metadata.store import MetadataStore
from tests.fuzz.admin import Admin
from tests.leftovers.census import census, growth
from tests.leftovers.standalone_here import StandaloneHere, standalone_here
from tests.leftovers.used_topics import Place, use_and_delete

WARM, TOPICS = 30, 200
JITTER = 10
"""What is there for a moment, of what the server does by itself. One thing of each topic, or of every seventh, is more."""
BOUNDED = {
    "broker.transaction.machine.Ended": "how the last 10,000 of a coordinator ended",
    "broker.transaction.machine.TransactionMachine._ended": "the same",
    "broker.transaction.machine.TransactionMachine._due": "as many as are open, and a thousand",
    "broker.transaction.meters.EndingMeters.by_topic": "of 10,000 topics, whoever serves them",
    "broker.transaction.meters.EndingCounts": "the same",
    "bookie.ranges.Ranges._firsts": "of the coordinators' logs, which are there still",
    "bookie.ranges.Ranges._parts": "the same",
    "bookie.storage.span.Span": "the same",
    "wire.run.EntryRun": "what is written and not flushed yet of those logs",
    "wire.run.EntryRun.buffer": "the same",
}
SETTLED_SECONDS_MAX, LOOK_SECONDS = 60.0, 0.5


async def paths(store: MetadataStore, at: str = "/") -> set[str]:
    found = {at}
    for name in await store.children(at):
        found |= await paths(store, f"{at.rstrip('/')}/{name}")
    return found


async def counted(server: StandaloneHere) -> dict[str, int]:
    """Once the bookie has heard of what was deleted."""
    await server.collect_garbage()
    return census()


def test_of_200_topics_of_all_kinds_nothing_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with standalone_here(tmp_path, "delayedDeliveryMinIndexCountPerBucket=2") as server:
            place = Place(server.port, Admin("127.0.0.1", server.web_port))
            await use_and_delete(place, WARM, "warm")
            before, there = await counted(server), await paths(server.store)
            await use_and_delete(place, TOPICS, "many")
            until = time.monotonic() + SETTLED_SECONDS_MAX
            while (left := _left(before, await counted(server))) and time.monotonic() < until:
                caplog.clear()  # errors that were logged have frames, and these hold what was at work
                await asyncio.sleep(LOOK_SECONDS)
            assert left == {}
            assert not server.standalone.service.loaded_topics
            assert await paths(server.store) - there == set()

    asyncio.run(scenario())


def _left(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: more for name, more in growth(before, after).items() if more > JITTER and name not in BOUNDED}
