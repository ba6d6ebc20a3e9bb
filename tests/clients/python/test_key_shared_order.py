"""Key_Shared with real consumers that join and leave: the order of each key is held."""

import random
import uuid
from contextlib import closing
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType

from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients

KEYS = 40
MESSAGES = 2000
RECEIVE_MS = 5
IDLE_ROUNDS_MAX = 2000


class Group:
    """The consumers of one subscription, and what they have processed of each key."""

    def __init__(self, client: pulsar.Client, topic: str, rng: random.Random) -> None:
        self._client, self._topic, self._rng = client, topic, rng
        self._consumers: list[Any] = []
        self.done = dict.fromkeys((f"k{key}" for key in range(KEYS)), 0)

    def join(self) -> None:
        self._consumers.append(self._client.subscribe(self._topic, "s", ConsumerType.KeyShared, receiver_queue_size=20))

    def leave(self) -> None:
        """Without acknowledging what is in its queue."""
        self._consumers.pop(self._rng.randrange(len(self._consumers))).close()

    def change(self) -> None:
        if len(self._consumers) < 2 or (len(self._consumers) < 5 and self._rng.random() < 0.5):
            self.join()
        else:
            self.leave()

    def step(self) -> bool:
        """One message of one consumer; False when there was none."""
        consumer = self._rng.choice(self._consumers)
        try:
            message = consumer.receive(timeout_millis=RECEIVE_MS)
        except pulsar.Timeout:
            return False
        key, number = message.partition_key(), int(message.data())
        assert number <= self.done[key] + 1, f"{key}: {number} came when only {self.done[key]} were processed"
        self.done[key] = max(number, self.done[key])
        consumer.acknowledge(message)
        return True

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()


@pytest.mark.parametrize("seed", [10, 11, 12, 15])
def test_the_order_of_a_key_is_held_while_consumers_come_and_go(server: Ready, seed: int) -> None:
    rng = random.Random(seed)
    topic = f"persistent://public/default/order-{uuid.uuid4().hex[:12]}"
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    with closing(pulsar.Client(server.broker_url, logger=logger)) as client, closing(Group(client, topic, rng)) as group:
        group.join()
        numbers = dict.fromkeys(group.done, 0)
        with closing(client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)) as producer:
            idle = 0
            for index in range(MESSAGES):
                key = f"k{rng.randrange(KEYS)}"
                numbers[key] += 1
                producer.send_async(str(numbers[key]).encode(), None, partition_key=key)
                group.step()
                if index % 20 == 19:
                    group.change()
            producer.flush()
        while group.done != numbers and idle < IDLE_ROUNDS_MAX:
            idle = 0 if group.step() else idle + 1
        assert group.done == numbers
