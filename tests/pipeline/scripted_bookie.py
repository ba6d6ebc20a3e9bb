"""A bookie of a few lines for the reader's tests: entries that a test gives it, on a real socket, answered in any order.

It shows nothing about real bookies; those are asked elsewhere.
"""

import socket
import struct
import threading
from collections.abc import Mapping

import crc32c

from tests.pipeline.scripted_server import ScriptedServer
from tests.wire.bookie.bookie_samples import frame
from wire.generated import bookie_protocol_pb2 as api

NO_ENTRY = 2
_HEAD = struct.Struct(">Iiqq")
_READ_BYTES = 24
"""Size of a read of version 2. Any other request is of version 3, and answered as by a bookie that hands over no files."""
_NO_FILES = frame(
    api.Response(
        header=api.BKPacketHeader(version=api.VERSION_THREE, operation=api.GET_BOOKIE_INFO, txnId=1),
        status=api.EOK,
        getBookieInfoResponse=api.GetBookieInfoResponse(status=api.EOK),
    ).SerializeToString()
)


def stored(ledger_id: int, entry_id: int, section: bytes) -> bytes:
    """Entry as a bookie keeps it: ids, last add confirmed, length, digest, payload."""
    header = struct.pack(">qqqq", ledger_id, entry_id, entry_id - 1, 0)
    return header + crc32c.crc32c(section, crc32c.crc32c(header)).to_bytes(4) + section


class ScriptedBookie(ScriptedServer):
    """`entries` by (ledger, entry), as they are stored. `answers_max`: how many it gives before it closes a connection."""

    def __init__(self, entries: Mapping[tuple[int, int], bytes], answers_max: int = 1 << 30) -> None:
        super().__init__()
        self.entries, self.answers_max = entries, answers_max
        self.asked: list[int] = []

    def _accepted(self, connection: socket.socket) -> None:
        """Several at a time."""
        self._threads.append(threading.Thread(target=super()._accepted, args=(connection,)))
        self._threads[-1].start()

    def _talk(self, connection: socket.socket) -> None:
        buffer = b""
        while data := connection.recv(1 << 16):
            buffer += data
            while len(buffer) >= 4 and len(buffer) >= (end := 4 + int.from_bytes(buffer[:4])) != _READ_BYTES:
                connection.sendall(_NO_FILES)
                buffer = buffer[end:]
            requests = [buffer[at : at + _READ_BYTES] for at in range(0, len(buffer) - _READ_BYTES + 1, _READ_BYTES)]
            buffer = buffer[_READ_BYTES * len(requests) :]
            for request in reversed(requests):  # no order is promised
                if not self._answer(connection, request):
                    return

    def _answer(self, connection: socket.socket, request: bytes) -> bool:
        """Whether the connection goes on."""
        size, header, ledger_id, entry_id = struct.unpack(">IIqq", request)
        assert (size, header) == (20, 0x02020000)
        self.asked.append(entry_id)
        if self.answers_max <= 0:
            return False
        self.answers_max -= 1
        found = self.entries.get((ledger_id, entry_id))
        body = _HEAD.pack(header, NO_ENTRY if found is None else 0, ledger_id, entry_id) + (found or b"")
        connection.sendall(len(body).to_bytes(4) + body)
        return True
