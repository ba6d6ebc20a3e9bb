"""Frames of the bookie protocol, both versions: `u32 size | body`, the size not counting itself, big-endian. Pure.

The bound counts the size's own four bytes, as Netty does. Nothing is reserved on the strength of a declared size.
"""

from wire.errors import MalformedFrame, other_protocol
from wire.run import Buffer

FRAME_BYTES_MIN = 4
"""No message of either version is shorter."""


def frame_end(buffer: Buffer, start: int, end: int, frame_bytes_max: int) -> int | None:
    """The position after the frame at `start` of buffer[:end], None while too little is there to know; it may lie beyond
    `end`. MalformedFrame when it can be no frame."""
    if end - start < 4:
        return None
    size = int.from_bytes(buffer[start : start + 4])
    if not FRAME_BYTES_MIN <= size <= frame_bytes_max - 4:
        hint = other_protocol(size.to_bytes(4))
        told = f"frame of {size} bytes, not {FRAME_BYTES_MIN} to {frame_bytes_max - 4} (nettyMaxFrameSizeBytes)"
        raise MalformedFrame(f"{told}{hint}")
    return start + 4 + size


def next_frame(buffer: Buffer, start: int, end: int, frame_bytes_max: int) -> tuple[bytes, int] | None:
    """A copy of the body of the frame at `start`, and the position after it; None while it is not whole. MalformedFrame."""
    after = frame_end(buffer, start, end, frame_bytes_max)
    if after is None or after > end:
        return None
    return bytes(buffer[start + 4 : after]), after


def framed(*parts: Buffer) -> bytes:
    """A frame whose body is these parts."""
    return b"".join((sum(map(len, parts)).to_bytes(4), *parts))
