"""Values of the metadata store and entries of cursor ledgers as protobuf messages, compressed or not. Pure."""

from google.protobuf.message import DecodeError, Message

from wire.compressed_metadata import uncompressed
from wire.errors import MalformedMetadata

from .errors import BrokenMetadata


def parse_into(message: Message, value: bytes, name: str) -> None:
    """Fill `message`; BrokenMetadata says what of `name` cannot be read."""
    kind = type(message).__name__
    try:
        message.ParseFromString(uncompressed(value))
    except (DecodeError, MalformedMetadata) as error:
        raise BrokenMetadata(f"{name}: its {kind} cannot be read: {error}") from error
    if not message.IsInitialized():
        raise BrokenMetadata(f"{name}: its {kind} lacks a required field")
