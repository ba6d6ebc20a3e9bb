"""Outbox: everything that is written to one peer, put together for each event of the loop, and bounded.

The sender of deliveries bounds them (`is_writable`). Answers cannot be held back, so a peer that asks without reading is
given up once BLOCKED_ANSWER_BYTES_MAX of answers wait for it.
"""

import asyncio
from collections.abc import Callable

from ports.loop.turn import turn_of

FLUSH_BYTES = 128 * 1024
"""Bytes handed to the transport at once, so that its back-pressure is felt in the middle of a large delivery."""
HIGH_WATER_BYTES = 1024 * 1024
LOW_WATER_BYTES = 256 * 1024
BLOCKED_ANSWER_BYTES_MAX = 8 * 1024 * 1024


class Outbox:
    """Outbox of one connection."""

    def __init__(self, transport: asyncio.WriteTransport, on_overflow: Callable[[], None]) -> None:
        self._transport = transport
        self._on_overflow = on_overflow
        self._turn = turn_of(asyncio.get_running_loop())
        self._frames: list[bytes] = []
        self._bytes = 0
        self._is_flush_asked = False
        self._blocked_answer_bytes = 0
        self._is_closed = False
        self.is_writable = True
        transport.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)

    def answer(self, frames: bytes) -> None:
        """Anything but deliveries."""
        if not self.is_writable:
            self._blocked_answer_bytes += len(frames)
            if self._blocked_answer_bytes > BLOCKED_ANSWER_BYTES_MAX and not self._is_closed:
                self._on_overflow()
        self.deliver(frames)

    def deliver(self, frames: bytes) -> None:
        if self._is_closed:
            return
        self._frames.append(frames)
        self._bytes += len(frames)
        if self._bytes >= FLUSH_BYTES:
            self.flush()
        elif not self._is_flush_asked:
            self._is_flush_asked = True
            self._turn.at_end(self._on_flush)

    def _on_flush(self) -> None:
        self._is_flush_asked = False
        self.flush()

    def flush(self) -> None:
        if self._frames and not self._is_closed:
            frames, self._frames, self._bytes = self._frames, [], 0
            if len(frames) == 1:
                self._transport.write(frames[0])
            else:
                self._transport.writelines(frames)

    def blocked(self) -> None:
        self.is_writable = False

    def unblocked(self) -> None:
        self.is_writable = True
        self._blocked_answer_bytes = 0

    def close(self) -> None:
        """Close; written bytes still go out, no more are taken."""
        self.flush()
        self._is_closed = True
        self._frames.clear()
