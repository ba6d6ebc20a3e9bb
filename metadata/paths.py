"""Paths of metadata nodes, and names inside them as Java's URLEncoder writes them. Pure.

Topics and cursors are one path element each, encoded as Pulsar's `Codec` does (URLEncoder and URLDecoder, UTF-8), so that
Apache's software finds ours and we find Apache's.
"""

from urllib.parse import quote_plus, unquote_to_bytes

from metadata.store import BadPath

ROOT = "/"
_JAVA_KEEPS = "*"
"""Beside letters, digits and `_.-`, which both keep. Python also keeps `~`, and Java does not."""


def check_path(path: str) -> None:
    """BadPath unless it is absolute, without an empty element and without a slash at the end."""
    if path != ROOT and (not path.startswith("/") or path.endswith("/") or "//" in path):
        raise BadPath(f"{path!r} is not a path")


def split_path(path: str) -> tuple[str, str]:
    """Parent and name; the parent of a first-level node is the root."""
    parent, _, name = path.rpartition("/")
    return parent or ROOT, name


def join_path(parent: str, name: str) -> str:
    return f"/{name}" if parent == ROOT else f"{parent}/{name}"


def is_at_or_below(path: str, prefix: str) -> bool:
    """Whether `path` is `prefix` or one of its descendants: `/a` covers `/a/b`, and not `/ab`."""
    return prefix == ROOT or path == prefix or (path.startswith(prefix) and path[len(prefix)] == "/")


def encode_name(name: str) -> str:
    """Encode as `URLEncoder.encode(name, UTF_8)`: a space is `+`, and a lone surrogate `?`."""
    return quote_plus(name.encode("utf-8", "replace"), safe=_JAVA_KEEPS).replace("~", "%7E")


def decode_name(encoded: str) -> str:
    """Decode as `URLDecoder.decode(encoded, UTF_8)`; ValueError where Java throws (a `%` without two hexadecimal digits)."""
    for at, character in enumerate(encoded):
        if character == "%":
            digits = encoded[at + 1 : at + 3]
            if len(digits) < 2 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(f"{encoded!r}: a percent sign needs two hexadecimal digits")
    return unquote_to_bytes(encoded.replace("+", " ")).decode("utf-8", "replace")
