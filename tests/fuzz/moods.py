"""Next commands of a peer: each command has its share. Pure; all chance is handed in."""

from collections.abc import Callable, Mapping
from random import Random

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandPing

from . import asking, consuming, producing
from .asked import Asked
from .knowledge import Knowledge, Peer

Maker = Callable[[Random, Peer, Knowledge], Asked]

SHARES: Mapping[Maker, int] = {
    producing.producer: 10,
    producing.send: 30,
    producing.close_producer: 3,
    producing.get_schema: 3,
    producing.get_or_create_schema: 3,
    consuming.subscribe: 10,
    consuming.flow: 10,
    consuming.ack: 15,
    consuming.redeliver: 3,
    consuming.seek: 3,
    consuming.unsubscribe: 2,
    consuming.close_consumer: 2,
    consuming.last_message_id: 3,
    consuming.consumer_stats: 3,
    asking.partitions: 3,
    asking.lookup: 3,
    asking.topics: 2,
    asking.watch: 2,
    asking.watch_close: 1,
    asking.coordinator: 3,
    asking.new_transaction: 4,
    asking.add_partition: 3,
    asking.add_subscription: 3,
    asking.end_transaction: 3,
    asking.end_on_partition: 2,
    asking.end_on_subscription: 2,
}
_WEIGHTS = list(SHARES.values())
LAST: tuple[Maker, ...] = (asking.from_broker, asking.incomplete, asking.connect)
"""Each is the end of a connection."""


def next_asked(rng: Random, peer: Peer, known: Knowledge, ends_one_in: int = 60) -> Asked:
    """Next command of a connected peer; one command in so many is of those that end it."""
    makers = list(SHARES)
    if rng.randrange(ends_one_in):
        return rng.choices(makers, _WEIGHTS)[0](rng, peer, known)
    if rng.random() < 0.4:
        return rng.choice(LAST)(rng, peer, known)
    return asking.mutated(rng, rng.choices(makers, _WEIGHTS)[0](rng, peer, known))


def first_asked(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    """Before CONNECT; seldom anything else than that."""
    if rng.randrange(15):
        return asking.connect(rng, peer, known)
    early = rng.choices(list(SHARES), _WEIGHTS)[0](rng, peer, known)
    return Asked(early.data, early.command, ends=True)


PING = BaseCommand(type=BaseCommand.PING, ping=CommandPing())
