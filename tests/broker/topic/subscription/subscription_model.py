"""A naive model of a subscription beside a real one, and a client that does anything it may, at random.

The model is told only what consumers got and what was asked. It knows: nothing acknowledged is delivered, nothing is with two
consumers at once, permits are kept, and in the end everything published was delivered and the backlog is empty.
"""

import asyncio
import random
from dataclasses import dataclass, field

from broker.topic.contract import Acknowledgement, SubscriptionType
from broker.topic.subscription.consumer import TopicConsumer
from tests.broker.topic.topic_world import ConsumerEnd, World, ack_run, payload
from wire.position import Position


@dataclass
class Client:
    """A consumer and what the model knows of it."""

    consumer: TopicConsumer
    sink: ConsumerEnd
    permits: int = 0
    seen: int = 0
    """Deliveries that the model has taken note of."""
    holds: set[Position] = field(default_factory=set)


class Model:
    """The world, and beside it what must be true of it."""

    def __init__(self, world: World, rng: random.Random, subscription_type: SubscriptionType) -> None:
        self.world = world
        self.rng = rng
        self.type = subscription_type
        self.is_shared = subscription_type in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
        self.clients: list[Client] = []
        self.sizes: dict[Position, int] = {}
        self.acknowledged: set[Position] = set()
        self.names = 0

    async def step(self) -> None:
        actions = [
            (self.publish, 5),
            (self.join, 2),
            (self.leave, 1),
            (self.flow, 5),
            (self.acknowledge, 5),
            (self.acknowledge_all_before, 1),
            (self.redeliver, 2),
            (self.block, 1),
            (self.unblock, 2),
            (self.pause, 4),
        ]
        action = self.rng.choices([a for a, _ in actions], [weight for _, weight in actions])[0]
        await action()
        self.take_note()

    # what clients do

    async def publish(self) -> None:
        sizes = [self.rng.choice((1, 1, 1, 4)) for _ in range(self.rng.randint(1, 12))]
        markers = [self.rng.random() < 0.1 for _ in sizes]
        bodies = [
            payload(marker=10) if marker else payload(batch=size if size > 1 else None, key=str(self.rng.randint(0, 5)))
            for size, marker in zip(sizes, markers, strict=True)
        ]
        positions = await self.world.publish(*bodies)
        for position, size, marker in zip(positions, sizes, markers, strict=True):
            if not marker:
                self.sizes[position] = size

    async def join(self) -> None:
        if len(self.clients) == (1 if self.type is SubscriptionType.EXCLUSIVE else 4):
            return
        self.names += 1
        consumer, sink = await self.world.consumer(permits=0, type=self.type, consumer_name=f"c{self.names}")
        sink.check = self.check_delivered
        self.clients.append(Client(consumer, sink))

    async def leave(self) -> None:
        if self.clients:
            client = self.clients.pop(self.rng.randrange(len(self.clients)))
            self.take_note_of(client)
            client.consumer.close()

    async def flow(self) -> None:
        for client in self.some():
            permits = self.rng.randint(1, 15)
            client.permits += permits
            client.consumer.flow(permits)

    async def acknowledge(self) -> None:
        for client in self.some():
            held = sorted(client.holds)
            chosen = self.rng.sample(held, self.rng.randint(0, len(held)))
            if chosen:
                self.acknowledged.update(chosen)
                client.consumer.acknowledge_run(ack_run(*chosen))

    async def acknowledge_all_before(self) -> None:
        if self.is_shared:
            return
        for client in self.some():
            if client.holds:
                position = self.rng.choice(sorted(client.holds))
                self.acknowledged.update(p for p in self.sizes if p <= position)
                client.consumer.acknowledge(Acknowledgement(True, (position,), ((),), (0,)))

    async def redeliver(self) -> None:
        for client in self.some():
            held = sorted(client.holds)
            chosen = self.rng.sample(held, self.rng.randint(0, len(held)))
            if self.is_shared:
                client.holds.difference_update(chosen or held)
            client.consumer.redeliver(chosen, None)

    async def block(self) -> None:
        for client in self.some():
            client.sink.room = len(client.sink.got)

    async def unblock(self) -> None:
        for client in self.clients:
            client.sink.room, client.sink.is_writable = 1 << 60, True
            client.consumer.writable()

    async def pause(self) -> None:
        await asyncio.sleep(self.rng.choice((0.001, 0.05, 2.0)))

    def some(self) -> list[Client]:
        return [client for client in self.clients if self.rng.random() < 0.6]

    # what must be true

    def check_delivered(self, position: Position) -> None:
        assert position not in self.acknowledged, "it was acknowledged before"

    def take_note(self) -> None:
        for client in self.clients:
            self.take_note_of(client)
        for subscription in self.world.topic.subscriptions.all:
            if subscription.dispatcher is not None:
                subscription.dispatcher.check_invariants()

    def take_note_of(self, client: Client) -> None:
        for delivery in client.sink.got[client.seen :]:
            position = delivery.position
            assert position in self.sizes, "a marker, or something that nobody published"
            if self.is_shared:
                holders = [other for other in self.clients if position in other.holds]
                assert not holders, "it is with somebody already"
            assert client.permits > 0, "an entry without a permit"
            client.permits -= self.sizes[position]
            client.holds.add(position)
        client.seen = len(client.sink.got)
        client.holds -= self.acknowledged
        if self.is_shared and not client.consumer.is_closed:
            assert client.consumer.stats().unacked_messages == sum(self.sizes[position] for position in client.holds)

    def check_order(self, client: Client) -> None:
        positions = client.sink.positions
        assert positions == sorted(positions)

    async def finish(self) -> None:
        """One consumer that takes everything and acknowledges it empties the subscription."""
        while self.clients:
            await self.leave()
        await self.join()
        (last,) = self.clients
        last.permits = 1_000_000
        last.consumer.flow(last.permits)
        await asyncio.sleep(5)
        self.take_note()
        assert set(last.sink.positions) == set(self.sizes) - self.acknowledged, "what is left, nothing else"
        self.check_order(last)
        if last.holds:
            last.consumer.acknowledge_run(ack_run(*sorted(last.holds)))
        await asyncio.sleep(1)
        assert self.world.topic.activity().backlog_entries == 0
