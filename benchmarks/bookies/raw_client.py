"""A client of one bookie that costs next to nothing, so that what is measured is the bookie: a blocking socket, ready frames.

Version 2 of the protocol, on one connection. Every answer is looked at: an error code ends the run. Not a client for anything
else.
"""

import random
import socket
import time
from array import array
from collections.abc import Iterator, Sequence

from bookkeeper.ledger_metadata.codec import master_key
from wire.bookie.version2 import packet_header
from wire.kernels.bookie_requests import add_requests, read_requests
from wire.kernels.entries import seal
from wire.run import HEADER_BYTES_CRC32C, EntryBatch, EntryRun

ADD, READ = 1, 2
KEY = master_key(b"")
SOCKET_SECONDS_MAX = 60.0
RECEIVE_BYTES = 1 << 18
WRITE_BYTES = 1 << 16
ADDED_BYTES = 28
"""Size of the answer to an add: its length, then header, code, ledger and entry."""
CODE_AT = 8


class Unexpected(Exception):
    """The bookie answered with an error."""


def add_frames(ledger_id: int, first_entry_id: int, count: int, payload_bytes: int) -> list[bytes]:
    """An add for each entry; the payloads are random once and then alike but for their first eight bytes."""
    width = HEADER_BYTES_CRC32C + payload_bytes
    filling = random.Random(payload_bytes).randbytes(payload_bytes)
    batch = EntryBatch(
        bytearray((bytes(HEADER_BYTES_CRC32C) + filling) * count), array("I", range(0, width * count + 1, width)),
        HEADER_BYTES_CRC32C, count,
    )  # fmt: skip
    seal(batch, ledger_id, first_entry_id, first_entry_id - 1, first_entry_id * payload_bytes)
    run = EntryRun(ledger_id, first_entry_id, batch.buffer, batch.offsets)
    return _cut(add_requests(run, packet_header(ADD), KEY), 28 + width)


def read_frames(ledger_id: int, entry_ids: Sequence[int]) -> list[bytes]:
    header = packet_header(READ)
    return [read_requests(header, ledger_id, entry_id, 1) for entry_id in entry_ids]


def _cut(frames: bytes, width: int) -> list[bytes]:
    return [frames[at : at + width] for at in range(0, len(frames), width)]


class RawBookieClient:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SOCKET_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def close(self) -> None:
        self._socket.close()

    def ask_all(self, frames: Sequence[bytes], window: int, answer_bytes: int = ADDED_BYTES) -> None:
        """Sends all, at most `window` of them unanswered, as many in a write as there is room for; answers of one size each."""
        sent = answered = 0
        per_write = max(1, WRITE_BYTES // len(frames[0]))
        while answered < len(frames):
            room = min(window - (sent - answered), len(frames) - sent)
            if room and (room >= min(per_write, window // 2) or sent + room == len(frames)):
                room = min(room, per_write)
                self._socket.sendall(b"".join(frames[sent : sent + room]))
                sent += room
            else:
                answered += self._take_answers(answer_bytes)

    def one_at_a_time(self, frames: Sequence[bytes], answer_bytes: int = ADDED_BYTES) -> list[float]:
        """Seconds of each, in order of size."""
        return sorted(self._timed(frames, answer_bytes))

    def _timed(self, frames: Sequence[bytes], answer_bytes: int) -> Iterator[float]:
        for frame in frames:
            began = time.perf_counter()
            self._socket.sendall(frame)
            while not self._take_answers(answer_bytes):
                pass
            yield time.perf_counter() - began

    def _take_answers(self, answer_bytes: int) -> int:
        """Count of answers that have come; waits for bytes."""
        data = self._socket.recv(RECEIVE_BYTES)
        if not data:
            raise Unexpected("the bookie closed the connection")
        self._received += data
        count = len(self._received) // answer_bytes
        if count:
            whole = self._received[: count * answer_bytes]
            del self._received[: count * answer_bytes]
            for place in range(CODE_AT, CODE_AT + 4):
                if any(whole[place::answer_bytes]):
                    raise Unexpected(f"an error among {count} answers: {bytes(whole[:ADDED_BYTES]).hex()}")
        elif len(self._received) >= ADDED_BYTES and any(self._received[CODE_AT : CODE_AT + 4]):
            raise Unexpected(f"an error: {bytes(self._received[:ADDED_BYTES]).hex()}")
        return count
