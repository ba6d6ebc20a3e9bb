"""Texts in compiled Java classes: names of the first version, with a cluster in them, become names of the second. Pure."""

import re
import struct

_UTF8, _LONG, _DOUBLE = 1, 5, 6
_BYTES = {3: 4, 4: 4, _LONG: 8, _DOUBLE: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Length of each other kind of constant after its tag (JVMS 4.4)."""
_ELSEWHERE = re.compile(rb"(?<![\w/-])((?:(?:non-)?persistent://)?[\w-]+)/(?:use|usw|usc)/(?=[\w\x01-])")
_HERE = re.compile(rb"(?<![\w/-])(?!src/)((?:(?:non-)?persistent://)?[\w-]+)/test/(?=[\w\x01-])")
"""Names with the cluster `test`, as Apache's tests call theirs; the same names without a cluster are in use beside them."""


def without_clusters(compiled: bytes) -> bytes:
    """Return the class file with `tenant/namespace` for `tenant/use/namespace`, and `tenant/test-ns` for `tenant/test/ns`."""
    (count,) = struct.unpack_from(">H", compiled, 8)
    parts, at, index = [compiled[:10]], 10, 1
    while index < count:
        tag = compiled[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", compiled, at + 1)
            text = _HERE.sub(rb"\1/test-", _ELSEWHERE.sub(rb"\1/", compiled[at + 3 : at + 3 + length]))
            parts.append(struct.pack(">BH", _UTF8, len(text)) + text)
            at += 3 + length
        else:
            parts.append(compiled[at : at + 1 + _BYTES[tag]])
            at += 1 + _BYTES[tag]
        index += 2 if tag in (_LONG, _DOUBLE) else 1
    return b"".join([*parts, compiled[at:]])
