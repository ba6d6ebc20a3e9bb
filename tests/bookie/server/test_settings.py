"""Values of a bookie's server settings that cannot be are refused with Apache's key; the outermost that can be are taken."""

import pytest

from bookie.server.settings import SMALLEST_FRAME_BYTES, BookieServerSettings
from ports.settings import BadSetting, build_settings

WRONG = {
    "bookiePort": ("-1", "65536"),
    "nettyMaxFrameSizeBytes": (str(SMALLEST_FRAME_BYTES - 1), str((1 << 30) + 1)),
    "zkTimeout": ("999",),
    "maxBatchReadSize": ("0", str(5 * 1024 * 1024 + 10 * 1024 + 1)),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_value_that_cannot_be_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(BadSetting, match=key):
        build_settings(BookieServerSettings, {key: value})


def test_the_outermost_values_are_taken() -> None:
    BookieServerSettings(bookie_port=0, zk_timeout=1000, netty_max_frame_size_bytes=1 << 30, max_batch_read_size=1 << 30)
    BookieServerSettings(bookie_port=65535, netty_max_frame_size_bytes=SMALLEST_FRAME_BYTES, max_batch_read_size=1)
