"""ClusterClient: one client program's way to the broker that serves its topic: any broker is asked, redirects are followed.

As Apache's clients: a lookup for each session, at a broker drawn from the service URL's; a connection for each broker, kept as
long as it lives; who is sent away with the name of the next owner goes there unasked (PIP-307).
"""

import asyncio
import random
from collections.abc import Sequence
from urllib.parse import urlsplit

from simulation.clients.client import Connection, Recorder, RequestFailed
from simulation.cluster.machines import BROKER_PORT
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand

REDIRECTS_MAX = 6
KEEP_ALIVE_SECONDS = 1.0
SILENCE_SECONDS_MAX = 2.0
"""After a ping; then the connection is given up."""
CONNECT_SECONDS_MAX = 3.0


class ClusterConnection(Connection):
    """Connection to one broker. `heir` is the place to which the broker said that the topic moves."""

    heir = ""

    async def _keep_alive(self) -> None:
        while not self.lost.is_set():
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            try:
                async with asyncio.timeout(SILENCE_SECONDS_MAX):
                    await self.ping()
            except TimeoutError:
                self.abort()
            except OSError:
                return

    def _on_command(self, command: BaseCommand, payload: bytes) -> None:
        if command.type == BaseCommand.CLOSE_PRODUCER:
            self.heir = command.close_producer.assigned_broker_service_url
        elif command.type == BaseCommand.CLOSE_CONSUMER:
            self.heir = command.close_consumer.assigned_broker_service_url
        super()._on_command(command, payload)


class ClusterClient:
    """Client of one topic. Has all that `SimProducer` and `SimConsumer` ask of a `Client`."""

    def __init__(self, recorder: Recorder, topic: str, brokers: Sequence[str], rng: random.Random) -> None:
        self.recorder, self.topic = recorder, topic
        self._brokers, self._rng = brokers, rng
        self._connections: dict[str, ClusterConnection] = {}
        self._connecting: dict[str, asyncio.Lock] = {}

    async def connection(self) -> Connection:
        """A connection to the present owner. Raises OSError, TimeoutError or RequestFailed; the caller tries again later."""
        for connection in self._connections.values():
            heir, connection.heir = connection.heir, ""
            if heir:
                return await self._to(_host(heir))
        asked, authoritative = self._rng.choice(self._brokers), False
        for _ in range(REDIRECTS_MAX):
            connection = await self._to(asked)
            found = await self._look_up(connection, authoritative=authoritative)
            asked, authoritative = _host(found.broker_service_url), found.authoritative
            if found.response == pb.CommandLookupTopicResponse.Connect:
                return await self._to(asked)
        raise RequestFailed("redirected all the time")

    async def _look_up(self, connection: Connection, *, authoritative: bool) -> pb.CommandLookupTopicResponse:
        number = connection.next_id()
        asked = pb.CommandPartitionedTopicMetadata(topic=self.topic, request_id=number)
        await connection.request(BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=asked), number)
        number = connection.next_id()
        lookup = pb.CommandLookupTopic(topic=self.topic, request_id=number, authoritative=authoritative)
        answer = await connection.request(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=lookup), number)
        return answer.lookup_topic_response

    async def _to(self, host: str) -> ClusterConnection:
        async with self._connecting.setdefault(host, asyncio.Lock()):
            connection = self._connections.get(host)
            if connection is None or connection.lost.is_set():
                connection = self._connections[host] = await self._connect(host)
            return connection

    async def _connect(self, host: str) -> ClusterConnection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            _, connection = await loop.create_connection(lambda: ClusterConnection(self.recorder), host, BROKER_PORT)
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await connection.handshake()
        except BaseException:
            connection.abort()
            raise
        return connection


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
