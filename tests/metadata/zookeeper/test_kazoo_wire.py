"""Bytes of a multi request."""

import struct

from metadata.zookeeper.kazoo_wire import MultiRequest
from metadata.zookeeper.requests import Create, Remove, SetData


def test_a_multi_has_the_bytes_of_zookeeper() -> None:
    """Header (type, done, error), path, data, ACL world:anyone with all rights, flags; lengths before strings."""
    request = MultiRequest("/root", (Create("/a", b"v", ephemeral=True), SetData("/a", b"w", 3), Remove("/a")))
    create = (
        b"\0\0\0\x07/root/a" + b"\0\0\0\x01v" + bytes.fromhex("00000001 0000001f 00000005") + b"world" + b"\0\0\0\x06anyone"
    )
    expected = struct.pack(">i?i", 15, False, -1) + create + struct.pack(">i", 1)
    expected += struct.pack(">i?i", 5, False, -1) + b"\0\0\0\x07/root/a" + b"\0\0\0\x01w" + struct.pack(">i", 3)
    expected += struct.pack(">i?i", 2, False, -1) + b"\0\0\0\x07/root/a" + struct.pack(">i", -1)
    assert request.serialize() == expected + struct.pack(">i?i", -1, True, -1)
