"""What a peer can do wrong, as seen from its bytes. Ours are bugs and are not in here."""


class RemoteError(Exception):
    """A peer's mistake; `reason` is one clear line for the log, without the peer's address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedFrame(RemoteError):
    """Sizes that cannot be: the bytes that follow have no meaning any more, and the connection has to end."""


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
