"""Handlers by command: the tables of all families of commands put together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from wire.generated.pulsar_api_pb2 import BaseCommand

from .consumers import consumer_requests, consumers
from .link import Routes
from .producers import producers
from .requests import lookups, schemas, topic_lists, transaction_ends, transactions

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Families:
    """Handlers of one connection, one for each family of commands."""

    producers: producers.Producers
    consumers: consumers.Consumers
    consumer_requests: consumer_requests.ConsumerRequests
    lookups: lookups.Lookups
    topic_lists: topic_lists.TopicLists
    transaction_ends: transaction_ends.TransactionEnds
    schemas: schemas.Schemas
    transactions: transactions.Transactions


Route: TypeAlias = tuple[Callable[[Families], Any], Callable[[Any, BaseCommand, memoryview], None]]
"""Family that handles a command, and the method of that family: `_routes` makes the two from one table, so that they match."""


def _routes(family: Callable[[Families], F], table: Routes[F]) -> Iterator[tuple[int, Route]]:
    return ((kind, (family, method)) for kind, method in table.items())


ROUTES: dict[int, Route] = dict(
    (
        *_routes(attrgetter("producers"), producers.ROUTES),
        *_routes(attrgetter("consumers"), consumers.ROUTES),
        *_routes(attrgetter("consumer_requests"), consumer_requests.ROUTES),
        *_routes(attrgetter("lookups"), lookups.ROUTES),
        *_routes(attrgetter("topic_lists"), topic_lists.ROUTES),
        *_routes(attrgetter("transaction_ends"), transaction_ends.ROUTES),
        *_routes(attrgetter("schemas"), schemas.ROUTES),
        *_routes(attrgetter("transactions"), transactions.ROUTES),
    )
)
"""Routes by type of command."""
