"""Line: one connection of the fuzz. Sends what it is given, keeps its account, answers PINGs; decides nothing."""

import asyncio
import contextlib
from collections.abc import Sequence

from simulation.clients.wire_format import take_frames
from tests.wire.frame_samples import frame
from wire.frames import PONG
from wire.generated.pulsar_api_pb2 import BaseCommand

from .account import Account
from .asked import Asked
from .moods import PING

SETTLE_SECONDS_MAX = 60.0
LOOSE_SECONDS = 0.1
"""Wait for the effect of bytes that are no command: half a frame brings nothing."""


class Line(asyncio.Protocol):
    """A connection from `opened` on; `close` last."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.name = ""
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self._changed = asyncio.Event()
        self._pongs_owed = 0
        self.hears_all: list[BaseCommand] | None = None
        """Commands received; None: they are not kept."""

    @classmethod
    async def opened(cls, host: str, port: int, account: Account) -> "Line":
        _, line = await asyncio.get_running_loop().create_connection(lambda: cls(account), host, port)
        return line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.name = "{}:{}".format(*transport.get_extra_info("sockname")[:2])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for command, _ in take_frames(self._buffer):
            if command.type == BaseCommand.PING:
                self._transport.write(PONG)
            elif command.type == BaseCommand.PONG:
                self._pongs_owed -= 1
            else:
                if self.hears_all is not None:
                    self.hears_all.append(command)
                self.account.hears(command)
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.account.lost()
        self._changed.set()

    def send(self, batch: Sequence[Asked]) -> None:
        """Sends all at once, so that the broker has them in one read. The account knows of them already."""
        self._transport.write(b"".join(asked.data for asked in batch))

    def begin_settling(self) -> None:
        """The PING that is answered once everything before it was read."""
        if not self.account.is_lost:
            self._pongs_owed += 1
            self._transport.write(frame(PING))

    async def settled(self) -> None:
        """Waits until all is answered or the connection is lost. A request without an answer is a finding."""
        seconds = LOOSE_SECONDS if self.account.is_loose else SETTLE_SECONDS_MAX
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self.account.is_lost or (self.account.is_settled and self._pongs_owed <= 0)):
                    self._changed.clear()
                    await self._changed.wait()
        if self.account.is_loose:
            self._end()
        elif not (self.account.is_lost or (self.account.is_settled and self._pongs_owed <= 0)):
            unpaid = self.account.unpaid() or ["no PONG"]
            self.account.findings += [f"peer {self.account.peer.number}: {each}" for each in unpaid]
            self._end()

    def _end(self) -> None:
        self.account.may_end = True
        self._transport.abort()

    async def closed(self) -> None:
        self.account.may_end = True
        self._transport.close()
        while not self.account.is_lost:
            self._changed.clear()
            await self._changed.wait()
