"""Handlers by command: the tables of all families of commands put together."""

from collections.abc import Callable
from typing import Any

from wire.generated.pulsar_api_pb2 import BaseCommand

from .consumers import consumer_requests, consumers
from .producers import producers
from .requests import lookups, schemas, topic_lists, transaction_ends, transactions

_FAMILIES: tuple[Any, ...] = (
    producers.ROUTES,
    consumers.ROUTES,
    consumer_requests.ROUTES,
    lookups.ROUTES,
    topic_lists.ROUTES,
    transaction_ends.ROUTES,
    schemas.ROUTES,
    transactions.ROUTES,
)
ROUTES: dict[int, tuple[int, Callable[[Any, BaseCommand, memoryview], None]]] = {
    kind: (index, route) for index, routes in enumerate(_FAMILIES) for kind, route in routes.items()
}
"""By type of command: which family's object, and its method."""
