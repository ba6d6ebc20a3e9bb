"""A bookie behind its port on a simulated machine, and a raw client of it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from bookie.bookie import Bookie
from bookie.server.listener import BookieListener
from bookie.server.settings import BookieServerSettings
from tests.bookie.machines import Machine, on_machine
from tests.wire.bookie.bookie_samples import frame
from wire.generated import bookie_protocol_pb2 as api

EOK, ENOLEDGER, ENOENTRY, EBADREQ, EIO, EUA, EBADVERSION, EFENCED, EREADONLY = 0, 1, 2, 100, 101, 102, 103, 104, 105


class Answer(NamedTuple):
    """Answer of version 2."""

    opcode: int
    code: int
    ledger_id: int
    entry_id: int
    body: bytes


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._txn_id = 0

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def answer(self) -> Answer:
        body = await self.frame()
        header, code, ledger_id, entry_id = struct.unpack_from(">Iiqq", body)
        return Answer(header >> 16 & 255, code, ledger_id, entry_id, body[24:])

    async def ask(self, data: bytes) -> Answer:
        self.send(data)
        return await self.answer()

    def send3(self, operation: api.OperationType, **bodies: Any) -> int:
        self._txn_id += 1
        header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=self._txn_id)
        self.send(frame(api.Request(header=header, **bodies).SerializeToString()))
        return self._txn_id

    async def answer3(self) -> api.Response:
        return api.Response.FromString(await self.frame())

    async def ask3(self, operation: api.OperationType, **bodies: Any) -> api.Response:
        txn_id = self.send3(operation, **bodies)
        response = await self.answer3()
        assert (response.header.txnId, response.header.operation) == (txn_id, operation)
        return response

    async def ended(self) -> bool:
        """The bookie closes the connection without another word."""
        return await self.reader.read(1) == b""


class Served:
    """The bookie and its port."""

    def __init__(self, machine: Machine, bookie: Bookie, listener: BookieListener) -> None:
        self.machine, self.bookie, self.listener = machine, bookie, listener

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("localhost", self.listener.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()


def served(scenario: Callable[[Served], Coroutine[Any, Any, None]], settings: BookieServerSettings | None = None) -> None:
    """Run a scenario in virtual time."""

    async def run(machine: Machine) -> None:
        bookie = await machine.start()
        listener = BookieListener(bookie, settings or BookieServerSettings())
        await listener.listen(None, 0)
        try:
            await scenario(Served(machine, bookie, listener))
        finally:
            await listener.close()

    on_machine(run)
