"""Bytes of a topic with a producer, a subscription and a consumer, as a program: it counts the objects of its process.

    python -m tests.leftovers.count_bytes DIRECTORY     one line of JSON: bytes a topic, and the largest types in it

Counted are the objects that the cycle collector follows, by the size that they give: the same in each run, whatever the
allocator keeps. Strings, numbers and buffers, and members of objects without slots, are not among them.
"""

import asyncio
import gc
import json
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.plain_client import PlainClient
from tests.leftovers.standalone_here import standalone_here
from tests.wire.frame_samples import metadata, send
from tests.wire.frame_samples import section as payload_section
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

WARM, TOPICS, MESSAGES = 20, 100, 2
LARGEST = 20


async def use(client: PlainClient, number: int) -> None:
    """Messages are published, delivered and acknowledged; the producer and the consumer stay."""
    topic = f"persistent://public/default/t-{number:04}"
    shared = {"sub_type": api.CommandSubscribe.Shared, "consumer_id": number}
    await client.request(BaseCommand.LOOKUP, topic=topic)
    await client.request(BaseCommand.SUBSCRIBE, topic=topic, subscription="s", **shared)
    await client.request(BaseCommand.PRODUCER, topic=topic, producer_id=number)
    client.send(BaseCommand(type=BaseCommand.FLOW, flow=api.CommandFlow(consumer_id=number, message_permits=1000)))
    for sequence in range(MESSAGES):
        told = metadata(f"p-{number}", sequence, 1)
        client.send_raw(send(number, sequence, payload_section(told.SerializeToString(), b"x" * 100)))
        await client.receipts.get()
        delivered = (await client.deliveries.get())[0].message
        ack = api.CommandAck(consumer_id=number, ack_type=api.CommandAck.Individual, message_id=[delivered.message_id])
        client.send(BaseCommand(type=BaseCommand.ACK, ack=ack))


def sizes() -> Counter[str]:
    """Bytes by type."""
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        found[type(each).__qualname__] += sys.getsizeof(each)
    return found


async def count_bytes(directory: Path) -> dict[str, object]:
    async with standalone_here(directory) as server:
        client = await PlainClient.connected("127.0.0.1", server.port)
        for number in range(WARM):
            await use(client, number)
        before = sizes()
        for number in range(WARM, WARM + TOPICS):
            await use(client, number)
        after = sizes()
        after.subtract(before)
        await client.close()
    largest = {name: size // TOPICS for name, size in after.most_common(LARGEST)}
    return {"bytes": after.total() // TOPICS, "largest": largest}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(count_bytes(Path(sys.argv[1])))))
