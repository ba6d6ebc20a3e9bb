"""Errors of a peer, as seen from its bytes. Our own are bugs and are not in here."""


class RemoteError(Exception):
    """A peer's mistake; `reason` is one clear line for the log, without the peer's address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedFrame(RemoteError):
    """Sizes that cannot be: the bytes that follow have no meaning any more, and the connection has to end."""


def other_protocol(first: bytes) -> str:
    """Other protocol that begins with these four bytes, for the message about an impossible size; "" for none known."""
    if first in _HTTP:
        return ": this is HTTP, which has a port of its own"
    return ": this is TLS, which has a port of its own" if first[:2] == b"\x16\x03" else ""


_HTTP = frozenset((b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"PRI "))


class MalformedCommand(RemoteError):
    """A whole frame whose command is not a readable BaseCommand."""


class UnknownCommand(MalformedCommand):
    """A command of a type that this protocol version does not know."""

    def __init__(self, number: int) -> None:
        super().__init__(f"command of unknown type {number}")
        self.number = number


class MalformedPayload(RemoteError):
    """A payload section that is not what it says it is."""


class ChecksumMismatch(MalformedPayload):
    """The CRC32C of a payload section differs from the one it carries."""


class MalformedMetadata(RemoteError):
    """A value of the metadata store that cannot be read."""
