"""Frames of the bookie protocol."""

import pytest

from tests.wire.bookie.bookie_samples import frame
from wire.bookie.frames import frame_end, next_frame
from wire.errors import MalformedFrame


def test_frames_have_bounds() -> None:
    assert next_frame(frame(b"abcdef"), 0, 10, 100) == (b"abcdef", 10)
    assert next_frame(frame(b"abcdef"), 0, 9, 100) is None
    assert frame_end(b"\0\0\0", 0, 3, 100) is None
    for size in (0, 3, 97, (1 << 32) - 1):
        with pytest.raises(MalformedFrame, match="nettyMaxFrameSizeBytes"):
            frame_end(size.to_bytes(4), 0, 4, 100)
