"""Leftovers of 200 topics of all kinds that were used and deleted, as a program: it counts the objects of its process.

    python -m tests.leftovers.count_leftovers DIRECTORY     one line of JSON: what is in memory, and what is in metadata

A process of its own, since what another test left behind, or still does, would be counted with it.
"""

import asyncio
import json
import sys
from pathlib import Path

from metadata.store import MetadataStore
from simulation.checks.census import census, growth
from tests.fuzz.admin import Admin
from tests.leftovers.standalone_here import StandaloneHere, standalone_here
from tests.leftovers.used_topics import Place, use_and_delete

WARM, TOPICS = 30, 200
JITTER = 10
"""Objects that the server's own work may keep for a moment. One object of each topic, or of every seventh, is more."""
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
    "bookie.journal.stats.JournalStats._writes": "at most 64 that are not counted yet",
    "ports.metrics.op_stats.Latencies._recorded": "the same, of each operation",
}
LOOKS_MAX, LOOK_SECONDS = 30, 0.5


async def paths(store: MetadataStore, at: str = "/") -> set[str]:
    found = {at}
    for name in await store.children(at):
        found |= await paths(store, f"{at.rstrip('/')}/{name}")
    return found


async def counted(server: StandaloneHere) -> dict[str, int]:
    """Once the bookie has heard of what was deleted."""
    await server.collect_garbage()
    return census()


def _left(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: more for name, more in growth(before, after).items() if more > JITTER and name not in BOUNDED}


async def count_leftovers(directory: Path) -> dict[str, object]:
    """`objects` by class and container, how many more; `topics` that are loaded; `paths` of metadata that were not there."""
    async with standalone_here(directory, "delayedDeliveryMinIndexCountPerBucket=2") as server:
        place = Place(server.port, Admin("127.0.0.1", server.web_port))
        await use_and_delete(place, WARM, "warm")
        before, there = await counted(server), await paths(server.store)
        await use_and_delete(place, TOPICS, "many")
        left: dict[str, int] = {}
        for _ in range(LOOKS_MAX):
            if not (left := _left(before, await counted(server))):
                break
            await asyncio.sleep(LOOK_SECONDS)
        loaded = sorted(map(str, server.standalone.service.catalogue.loaded_topics))
        return {"objects": left, "topics": loaded, "paths": sorted(await paths(server.store) - there)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(count_leftovers(Path(sys.argv[1])))))
