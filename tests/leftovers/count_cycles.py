"""Made and deleted things that only the cycle collector could free, as a program: it looks at its own process.

    python -m tests.leftovers.count_cycles DIRECTORY [KIND ...]     one line of JSON: by kind, by class, how many

A server sets aside what has outlived two runs of the collector (docs/adr/0029): cycles among that stay when they become
garbage. So nothing that there can be very many of may need the collector to go.
"""

import asyncio
import gc
import json
import sys
import types
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import uvloop

from simulation.checks.census import OURS
from tests.fuzz.admin import Admin, path_of
from tests.fuzz.plain_client import PlainClient, Refused
from tests.leftovers.standalone_here import StandaloneHere, standalone_here
from tests.leftovers.used_topics import Place, UsedTopic
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

WARM, COUNT = 3, 24
JITTER = 5
"""Objects of a class that the server's own work may leave meanwhile."""
TOPIC = "persistent://public/default/cycles"
Work = Callable[[Place, int], Awaitable[None]]


async def _subscribe(client: PlainClient, count: int, kind: int, *, durable: bool = True) -> None:
    for number in range(count):
        name = f"s-{number}"
        asked = {"topic": TOPIC, "subscription": name, "consumer_id": number, "sub_type": kind, "durable": durable}
        await client.request(BaseCommand.SUBSCRIBE, **asked)


async def _client(place: Place) -> PlainClient:
    return await PlainClient.connected("127.0.0.1", place.port)


async def subscriptions(place: Place, count: int) -> None:
    """Without consumers any more, deleted with their topic."""
    client = await _client(place)
    await _subscribe(client, count, api.CommandSubscribe.Shared)
    for number in range(count):
        await client.request(BaseCommand.CLOSE_CONSUMER, consumer_id=number)
    await place.call("DELETE", f"{path_of(TOPIC)}?force=true")
    await client.close()


async def unsubscribed(place: Place, count: int) -> None:
    """Deleted by their consumers."""
    client = await _client(place)
    await _subscribe(client, count, api.CommandSubscribe.Failover)
    for number in range(count):
        await client.request(BaseCommand.UNSUBSCRIBE, consumer_id=number)
    await client.close()


async def consumers(place: Place, count: int) -> None:
    """One subscription each, there when the topic is deleted."""
    client = await _client(place)
    await _subscribe(client, count, api.CommandSubscribe.Key_Shared)
    await place.call("DELETE", f"{path_of(TOPIC)}?force=true")
    await client.close()


async def readers(place: Place, count: int) -> None:
    client = await _client(place)
    await _subscribe(client, count, api.CommandSubscribe.Exclusive, durable=False)
    await client.close()


async def producers(place: Place, count: int) -> None:
    client = await _client(place)
    for number in range(count):
        asked = api.CommandProducer(topic=TOPIC, producer_id=number, request_id=number + 1)
        await client.asked(BaseCommand(type=BaseCommand.PRODUCER, producer=asked))
    await client.close()


async def connections(place: Place, count: int) -> None:
    for _ in range(count):
        client = await _client(place)
        await client.request(BaseCommand.LOOKUP, topic=TOPIC)
        await client.close()


async def topics(place: Place, count: int) -> None:
    for number in range(count):
        await place.call("PUT", path_of(f"{TOPIC}-{number}"))
    for number in range(count):
        await place.call("GET", f"{path_of(f'{TOPIC}-{number}')}/stats")
    for number in range(count):
        await place.call("DELETE", path_of(f"{TOPIC}-{number}"))


async def partitions(place: Place, count: int) -> None:
    path = f"{path_of(f'{TOPIC}-wide')}/partitions"
    await place.call("PUT", path, count)
    await place.call("DELETE", f"{path}?force=true")


async def namespaces(place: Place, count: int) -> None:
    for number in range(count):
        await place.call("PUT", f"namespaces/public/c-{number}")
        await place.call("PUT", path_of(f"persistent://public/c-{number}/t"))
    for number in range(count):
        await place.call("DELETE", f"namespaces/public/c-{number}?force=true")


async def used(place: Place, count: int) -> None:
    """Topics of all kinds, with all that there is to a topic."""
    await place.call("PUT", "namespaces/public/used")
    for number in range(count):
        topic = UsedTopic(place, number, "used")
        await topic.use()
        await topic.delete()
    await place.call("DELETE", "namespaces/public/used?force=true")


async def refusals(place: Place, count: int) -> None:
    """Requests that cannot be granted."""
    client = await _client(place)
    missing = {"topic": f"{TOPIC}-missing", "subscription": "s", "sub_type": 0}
    nowhere = {"topic": "persistent://public/nowhere/t"}
    for number in range(count):
        for kind, asked in (
            (BaseCommand.SUBSCRIBE, {**missing, "consumer_id": number, "force_topic_creation": False}),
            (BaseCommand.SUBSCRIBE, {**missing, **nowhere, "consumer_id": number}),
            (BaseCommand.PRODUCER, {**nowhere, "producer_id": number}),
            (BaseCommand.UNSUBSCRIBE, {"consumer_id": 1 << 30}),
            (BaseCommand.PARTITIONED_METADATA, {"topic": "no://topic"}),
            (BaseCommand.GET_SCHEMA, {"topic": f"{TOPIC}-missing"}),
        ):
            with suppress(Refused):
                await client.request(kind, **asked)
        for path in ("stats", "internalStats", "partitions", "partitioned-stats", "subscription/s/position/1"):
            await place.admin.call("GET", f"{path_of(f'{TOPIC}-missing')}/{path}")
        await place.admin.call("GET", "namespaces/public/nowhere")
        await place.admin.call("POST", "namespaces/public/default/retention", {"retentionTimeInMinutes": "often"})
    await client.close()


KINDS: dict[str, Work] = {
    each.__name__: each
    for each in (
        subscriptions,
        unsubscribed,
        consumers,
        readers,
        producers,
        connections,
        topics,
        partitions,
        namespaces,
        refusals,
        used,
    )
}


def garbage() -> Counter[str]:
    """Objects that the collector finds; they are released, so that it does not find them again."""
    gc.collect()
    found = Counter(filter(None, map(_named, gc.garbage)))
    gc.garbage.clear()
    return found


def _named(thing: object) -> str | None:
    """Objects of ours, and what runs code of ours."""
    kind = type(thing)
    if isinstance(kind.__module__, str) and kind.__module__.partition(".")[0] in OURS and not kind.__module__.endswith("_pb2"):
        return f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(thing, asyncio.Task | types.CoroutineType | types.FrameType | types.TracebackType | BaseException):
        return f"{kind.__name__} {thing!r:.300}" if isinstance(thing, BaseException) else kind.__name__
    return None


async def count_cycles(server: StandaloneHere, kinds: list[str]) -> dict[str, dict[str, int]]:
    place = Place(server.port, Admin("127.0.0.1", server.web_port))
    found = {}
    for kind in kinds:
        await KINDS[kind](place, WARM)
        await server.collect_garbage()
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        garbage()
        await KINDS[kind](place, COUNT)
        await server.collect_garbage()
        left = garbage()
        gc.set_debug(0)
        gc.collect()
        found[kind] = {name: count for name, count in left.most_common() if count > JITTER}
    return found


async def _main(directory: Path, kinds: list[str]) -> dict[str, dict[str, int]]:
    async with standalone_here(directory, "delayedDeliveryMinIndexCountPerBucket=2") as server:
        gc.disable()
        return await count_cycles(server, kinds or list(KINDS))


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_main(Path(sys.argv[1]), sys.argv[2:]))))
