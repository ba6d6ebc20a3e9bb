"""Frames one at a time: `u32 size | u32 command size | BaseCommand | payload section`, big-endian. Pure.

The slow path beside `wire.kernels`: everything that is not a plain SEND or ACK, and the precise word on everything malformed.
Each declared number is compared with what it is about before it is used, and nothing is reserved on the strength of one: it
only looks at bytes that have come. A frame's size counts all but its own four bytes; the bound counts them too, as Netty does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from wire.errors import MalformedCommand, MalformedFrame, UnknownCommand, other_protocol
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandPing, CommandPong
from wire.kernels.sends import FRAME_BYTES_MAX
from wire.readable_text import is_readable
from wire.run import Buffer

FRAME_PADDING_BYTES = 10 * 1024
"""A frame may be this much larger than maxMessageSize (Commands.MESSAGE_SIZE_FRAME_PADDING)."""

COMMAND_BYTES_MAX = 1024 * 1024
"""A command that a client sends, without its payload: one of 5 MB is most of a second of work. The largest are acknowledgements
of tens of thousands of messages and schemas. Apache bounds the frame alone."""
_TEXTS_MAX = 64
"""Texts of one field that are checked one by one; for more, protobuf says whether all are readable, but not which is not."""

_BODIES = {field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.number > 1}
"""A command of type N is in field number N."""
_LENGTH_DELIMITED = 2
"""Protobuf's wire type of a message in a field."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame. `payload` lies in the buffer that was given: use it before that buffer is written again.

    `end` is the position after the frame, where the next one starts.
    """

    command: BaseCommand
    payload: memoryview
    end: int


def frame_end(buffer: Buffer, start: int, end: int, frame_bytes_max: int = FRAME_BYTES_MAX) -> int | None:
    """The position after the frame at `start`, None while too little of it is there to know.

    It may lie beyond `end`: then the rest has yet to come. MalformedFrame as soon as it is clear that it can be no frame.
    """
    if end - start < 4:
        return None
    size = int.from_bytes(buffer[start : start + 4])
    if size > frame_bytes_max - 4:
        said = f"{size}" if size < 1 << 31 else f"{size} ({size - (1 << 32)} as a signed number)"
        hint = other_protocol(bytes(buffer[start : start + 4]))
        raise MalformedFrame(f"frame of {said} bytes, more than the {frame_bytes_max - 4} allowed{hint}")
    if size < 5:
        raise MalformedFrame(f"frame of {size} bytes, which holds no command")
    if end - start < 8:
        return None
    command_size = int.from_bytes(buffer[start + 4 : start + 8])
    if command_size == 0:
        raise MalformedFrame("command of 0 bytes")
    if command_size > size - 4:
        raise MalformedFrame(f"command of {command_size} bytes in a frame of {size}")
    return start + 4 + size


def next_frame(
    buffer: Buffer,
    start: int,
    end: int,
    frame_bytes_max: int = FRAME_BYTES_MAX,
    command_bytes_max: int = FRAME_BYTES_MAX,
) -> Frame | None:
    """The frame at `start` of the bytes before `end`; None while it is not whole. MalformedFrame, MalformedCommand."""
    after = frame_end(buffer, start, end, frame_bytes_max)
    if after is None or after > end:
        return None
    view = memoryview(buffer)
    command_end = start + 8 + int.from_bytes(view[start + 4 : start + 8])
    if command_end - start - 8 > command_bytes_max:
        raise _too_long(view[start + 8 : command_end], command_bytes_max)
    return Frame(decode_command(bytes(view[start + 8 : command_end])), view[command_end:after], after)


def decode_command(encoded: bytes) -> BaseCommand:
    """A command that has its type, the body of that type and all its required fields, with readable text.

    Python's protobuf checks neither requiredness nor, in proto2, UTF-8; Apache's broker relies on both.
    """
    try:
        command = BaseCommand.FromString(encoded)
    except DecodeError as error:
        raise MalformedCommand(f"unreadable command of {len(encoded)} bytes") from error
    if not command.HasField("type"):
        raise _without_known_type(encoded)
    body = _BODIES[command.type]
    if not command.HasField(body):
        raise MalformedCommand(f"{BaseCommand.Type.Name(command.type)} without its body")
    if not command.IsInitialized():
        missing = next(_missing_fields(getattr(command, body), ""), "a field of another command")
        raise MalformedCommand(f"{BaseCommand.Type.Name(command.type)} without {missing}")
    if not encoded.isascii():
        unreadable = _found_unreadable(getattr(command, body), encoded)
        if unreadable is not None:
            raise MalformedCommand(f"{BaseCommand.Type.Name(command.type)} with a {unreadable} that is not UTF-8")
    return command


def encode(command: BaseCommand, payload: Buffer = b"") -> bytes:
    """A frame. A command of ours that lacks a required field is a bug: protobuf's EncodeError goes through."""
    encoded = command.SerializeToString()
    sizes = (len(encoded) + 4 + len(payload)).to_bytes(4) + len(encoded).to_bytes(4)
    return b"".join((sizes, encoded, payload))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def joined(kind: BaseCommand.Type, field: str, parts: Sequence[bytes]) -> bytes:
    """The frame of a command whose message, in `field`, was encoded in parts: `encode` of all of it at once gives the same."""
    head, body_bytes = BaseCommand(type=kind).SerializeToString(), sum(map(len, parts))
    head += _varint(BaseCommand.DESCRIPTOR.fields_by_name[field].number << 3 | _LENGTH_DELIMITED) + _varint(body_bytes)
    command_bytes = len(head) + body_bytes
    return b"".join(((command_bytes + 4).to_bytes(4), command_bytes.to_bytes(4), head, *parts))


PING = encode(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
PONG = encode(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))


def _too_long(encoded: memoryview, bytes_max: int) -> MalformedCommand:
    """Error for a frame that is too long, with the name of its type where that comes first."""
    known = BaseCommand.DESCRIPTOR.enum_types_by_name["Type"].values_by_number.get(_first_type(bytes(encoded[:11])) or 0)
    kind = "command" if known is None else known.name
    return MalformedCommand(f"{kind} of {len(encoded)} bytes without its payload, more than the {bytes_max} that are taken")


def _without_known_type(encoded: bytes) -> MalformedCommand:
    """Protobuf leaves out the value of an enum that it does not know: look for the number where encoders write it, first."""
    number = _first_type(encoded)
    return MalformedCommand("command without a type") if number is None else UnknownCommand(number)


def _first_type(encoded: bytes) -> int | None:
    """The number of a command's type, which encoders write first; None where something else is."""
    if not encoded.startswith(b"\x08"):
        return None
    number = 0
    for shift, octet in enumerate(encoded[1:11]):
        number |= (octet & 127) << 7 * shift
        if octet < 128:
            break
    return number


def _missing_fields(message: Message, path: str) -> Iterator[str]:
    for field in message.DESCRIPTOR.fields:
        if field.is_required and not message.HasField(field.name):
            yield path + field.name
    for name, inner in _inner_messages(message, path):
        yield from _missing_fields(inner, f"{name}.")


def _found_unreadable(message: Message, encoded: bytes) -> str | None:
    if _has_many_texts(message):
        return None if is_readable(encoded) else "text"
    return next(_unreadable_text(message, ""), None)


def _has_many_texts(message: Message) -> bool:
    texts, inner_messages = _texts_of(message.DESCRIPTOR)
    if any(is_repeated and len(getattr(message, name)) > _TEXTS_MAX for name, is_repeated in (*texts, *inner_messages)):
        return True
    return any(
        any(map(_has_many_texts, getattr(message, name))) if is_repeated else _has_many_texts(getattr(message, name))
        for name, is_repeated in inner_messages
    )


def _unreadable_text(message: Message, path: str) -> Iterator[str]:
    """Message ids have no text, and a command may have very many: nothing is asked of them one by one."""
    texts, inner_messages = _texts_of(message.DESCRIPTOR)
    for name, is_repeated in texts:
        value = getattr(message, name)
        if not (all(isinstance(text, str) for text in value) if is_repeated else isinstance(value, str)):
            yield path + name
    for name, is_repeated in inner_messages:
        if is_repeated or message.HasField(name):
            value = getattr(message, name)
            for inner in value if is_repeated else (value,):
                yield from _unreadable_text(inner, f"{path}{name}.")


@cache
def _texts_of(descriptor: Descriptor) -> tuple[Sequence[tuple[str, bool]], Sequence[tuple[str, bool]]]:
    """The fields of text, and those of messages that have text somewhere inside; with whether they are repeated."""
    texts = [(field.name, field.is_repeated) for field in descriptor.fields if field.type == field.TYPE_STRING]
    inner = [field for field in descriptor.fields if field.type == field.TYPE_MESSAGE and field.message_type is not descriptor]
    return texts, [(field.name, field.is_repeated) for field in inner if any(_texts_of(field.message_type))]


def _inner_messages(message: Message, path: str) -> Iterator[tuple[str, Message]]:
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                yield path + field.name, inner
