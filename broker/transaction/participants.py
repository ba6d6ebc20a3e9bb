"""Access to the participants of a transaction: here by a call, at another broker by its command.

Owns one connection to each other broker that was asked lately. Apache: TransactionBufferClientImpl.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from metadata.store import MetadataError
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import unsigned
from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from ..service.addresses import Advertised
from ..service.errors import NamespaceNotFound
from ..service.lookup import Lookup
from ..service.neighbours.neighbour_link import NeighbourLink, lookup
from ..service.neighbours.neighbours import Neighbours
from ..service.topic_name import TopicName
from .contract import Participants

LINKS_MAX = 64
"""The one that was made first goes."""
_ANSWERS = {
    BaseCommand.END_TXN_ON_PARTITION_RESPONSE: "end_txn_on_partition_response",
    BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE: "end_txn_on_subscription_response",
}


class ParticipantsAnywhere:
    """`Participants` of the whole cluster; `here` are those of this broker. `close` last."""

    def __init__(self, lookup: Lookup, here: Participants) -> None:
        self._lookup, self._here = lookup, here
        self._links: dict[str, _Link] = {}
        self._opening: dict[str, asyncio.Task[_Link]] = {}
        self._numbers = count(1)

    async def end_on_partition(self, topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        command = _on_partition(topic, txn_id, action, low_water_mark)
        await self._end(topic, command, lambda: self._here.end_on_partition(topic, txn_id, action, low_water_mark))

    async def end_on_subscription(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int
    ) -> None:
        command = _on_subscription(topic, subscription, txn_id, action, low_water_mark)
        await self._end(
            topic, command, lambda: self._here.end_on_subscription(topic, subscription, txn_id, action, low_water_mark)
        )

    async def _end(self, topic: str, command: BaseCommand, here: Callable[[], Awaitable[None]]) -> None:
        try:
            found = await self._lookup.find(TopicName.parse(topic))
        except NamespaceNotFound:
            return  # its topics are deleted
        except MetadataError as error:
            raise BrokerError(ServerError.METADATA, str(error)) from error
        if found.address == self._lookup.advertised:
            await here()
            return
        link = await self._link(found.address)
        if found.is_redirect:
            await link.ask_one(lookup(topic))
        await link.end_transaction(next(self._numbers), command)

    async def _link(self, address: Advertised) -> "_Link":
        """BrokerError(SERVICE_NOT_READY)."""
        url = address.broker_url or address.broker_url_tls
        link = self._links.get(url)
        if link is not None and not link.has_ended:
            return link
        task = self._opening.get(url)
        if task is None:
            task = self._opening[url] = asyncio.create_task(self._open(url, address), name=f"link to {url}")
            task.add_done_callback(lambda done: self._opened(url, done))
        return await asyncio.shield(task)

    async def _open(self, url: str, address: Advertised) -> "_Link":
        link = _Link(address, self._lookup.neighbours)
        try:
            await link.open()
        except BaseException:
            link.end("it was not opened")
            raise
        self._links.pop(url, None)
        while len(self._links) >= LINKS_MAX:
            self._links.pop(next(iter(self._links))).end("there are too many")
        self._links[url] = link
        return link

    def _opened(self, url: str, done: "asyncio.Task[_Link]") -> None:
        del self._opening[url]
        if not done.cancelled():
            done.exception()  # waiting callers get it

    async def close(self) -> None:
        """Ends all requests. Closing twice is fine."""
        for task in list(self._opening.values()):
            task.cancel()
        if self._opening:
            await asyncio.wait(list(self._opening.values()))
        for link in self._links.values():
            link.end("not needed any more")
        self._links.clear()


class _Link(NeighbourLink):
    """Many transactions at a time, told apart by the number of the request."""

    def __init__(self, address: Advertised, neighbours: Neighbours) -> None:
        super().__init__(address, neighbours, "participants of transactions")
        self._turn = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def ask_one(self, command: BaseCommand) -> None:
        """Asks like `ask`, after earlier callers."""
        async with self._turn:
            await self.ask(command)

    async def end_transaction(self, number: int, command: BaseCommand) -> None:
        """BrokerError; no answer when the connection ends. The caller bounds the time."""
        if self.has_ended:
            raise self.failure("the connection has ended")
        body = command.end_txn_on_partition if command.HasField("end_txn_on_partition") else command.end_txn_on_subscription
        body.request_id = number
        waiting = self._waiting[number] = self._loop.create_future()
        self.send(command)
        try:
            await waiting
        finally:
            self._waiting.pop(number, None)

    def handle(self, command: BaseCommand, payload: memoryview) -> None:
        name = _ANSWERS.get(command.type)
        told = command.error if command.type == BaseCommand.ERROR else getattr(command, name) if name else None
        waiting = None if told is None else self._waiting.get(told.request_id)
        if waiting is None or told is None:
            super().handle(command, payload)
        elif not waiting.done() and told.HasField("error"):
            waiting.set_exception(BrokerError(ServerError(int(told.error)), told.message))
        elif not waiting.done():
            waiting.set_result(None)

    def on_end(self, reason: str) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.failure(reason))


def _on_partition(topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> BaseCommand:
    told = api.CommandEndTxnOnPartition(
        request_id=0,
        topic=topic,
        txnid_most_bits=txn_id.most,
        txnid_least_bits=txn_id.least,
        txn_action=action.name,
        txnid_least_bits_of_low_watermark=unsigned(low_water_mark),
    )
    return BaseCommand(type=BaseCommand.END_TXN_ON_PARTITION, end_txn_on_partition=told)


def _on_subscription(topic: str, name: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> BaseCommand:
    told = api.CommandEndTxnOnSubscription(
        request_id=0,
        subscription=api.Subscription(topic=topic, subscription=name),
        txnid_most_bits=txn_id.most,
        txnid_least_bits=txn_id.least,
        txn_action=action.name,
        txnid_least_bits_of_low_watermark=unsigned(low_water_mark),
    )
    return BaseCommand(type=BaseCommand.END_TXN_ON_SUBSCRIPTION, end_txn_on_subscription=told)
