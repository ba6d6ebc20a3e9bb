"""PlainClient: a client in its right mind, beside the fuzz and after it. One connection; waits for each answer."""

import asyncio
from typing import Any, cast

from simulation.clients.wire_format import take_frames
from tests.wire.frame_samples import frame
from wire.frames import PONG
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from .asking import BODIES

ANSWER_SECONDS_MAX = 60.0
_UNASKED = (
    BaseCommand.ACTIVE_CONSUMER_CHANGE,
    BaseCommand.CLOSE_CONSUMER,
    BaseCommand.CLOSE_PRODUCER,
    BaseCommand.PONG,
    BaseCommand.WATCH_TOPIC_UPDATE,
)


class Refused(Exception):
    """The broker answered with an error."""


class PlainClient(asyncio.Protocol):
    """`deliveries` has the commands of MESSAGE with their sections, `receipts` SEND_RECEIPT and SEND_ERROR, as they come."""

    def __init__(self) -> None:
        self.deliveries: asyncio.Queue[tuple[BaseCommand, bytes]] = asyncio.Queue()
        self.receipts: asyncio.Queue[BaseCommand] = asyncio.Queue()
        self._answers: asyncio.Queue[BaseCommand] = asyncio.Queue()
        self._buffer = bytearray()
        self._request_id = 0
        self._transport: asyncio.Transport
        self._lost = asyncio.Event()

    @classmethod
    async def connected(cls, host: str, port: int) -> "PlainClient":
        _, client = await asyncio.get_running_loop().create_connection(cls, host, port)
        told = api.CommandConnect(client_version="plain", protocol_version=21)
        await client.asked(BaseCommand(type=BaseCommand.CONNECT, connect=told))
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for command, section in take_frames(self._buffer):
            if command.type == BaseCommand.PING:
                self._transport.write(PONG)
            elif command.type == BaseCommand.MESSAGE:
                self.deliveries.put_nowait((command, section))
            elif command.type in (BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR):
                self.receipts.put_nowait(command)
            elif command.type not in _UNASKED:
                self._answers.put_nowait(command)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()

    def send(self, command: BaseCommand, section: bytes = b"") -> None:
        self._transport.write(frame(command, section))

    def send_raw(self, data: bytes) -> None:
        self._transport.write(data)

    async def asked(self, command: BaseCommand) -> BaseCommand:
        """The answer. Refused, TimeoutError."""
        self.send(command)
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            answer = await self._answers.get()
        if answer.type == BaseCommand.ERROR:
            raise Refused(f"{api.ServerError.Name(answer.error.error)}: {answer.error.message}")
        return answer

    async def request(self, kind: BaseCommand.Type, **members: Any) -> BaseCommand:
        """A command that has a request id."""
        self._request_id += 1
        command = BaseCommand(type=kind)
        body = getattr(command, BODIES[kind])
        for name, value in {"request_id": self._request_id, **members}.items():
            setattr(body, name, value)
        return await self.asked(command)

    def flow(self, permits: int) -> None:
        self.send(BaseCommand(type=BaseCommand.FLOW, flow=api.CommandFlow(consumer_id=0, message_permits=permits)))

    async def close(self) -> None:
        self._transport.close()
        await self._lost.wait()
