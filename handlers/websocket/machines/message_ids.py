"""Message ids as text: base64 of Apache's MessageIdData, as its clients' `toByteArray` writes it. Pure."""

import base64
import binascii

from google.protobuf.message import DecodeError

from wire.generated.pulsar_api_pb2 import MessageIdData

_NONE = (1 << 64) - 1
_LAST = (1 << 63) - 1
EARLIEST = MessageIdData(ledger_id=_NONE, entry_id=_NONE)
LATEST = MessageIdData(ledger_id=_LAST, entry_id=_LAST)
TEXT_CHARACTERS_MAX = 1024


class NotAMessageId(Exception):
    """A text that is no message id."""


def text_of(ledger_id: int, entry_id: int, partition: int, batch_index: int = -1, batch_size: int = 0) -> str:
    """Text of an id. Absent: partition and index -1, size 0."""
    about = MessageIdData(ledger_id=ledger_id, entry_id=entry_id)
    if partition >= 0:
        about.partition = partition
    if batch_index >= 0:
        about.batch_index = batch_index
    if batch_size > 0:
        about.batch_size = batch_size
    return base64.b64encode(about.SerializeToString()).decode("ascii")


def message_id_of(text: str) -> MessageIdData:
    """NotAMessageId."""
    try:
        if len(text) > TEXT_CHARACTERS_MAX:
            raise NotAMessageId(f"a message id of {len(text)} characters")
        found = MessageIdData.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        raise NotAMessageId(f"not a message id in base64: {text[:60]!r}") from None
    if not found.IsInitialized():
        raise NotAMessageId(f"a message id without ledger or entry: {text[:60]!r}")
    return found
