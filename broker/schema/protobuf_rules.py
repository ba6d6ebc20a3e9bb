"""Protobuf's rules for native schemas: allowed changes of a message, for which its readers do not fail. Pure.

A definition is JSON as Apache's ProtobufNativeSchemaData: the file descriptors (base64), the root message's name and its file.
Apache checks for the same root message alone; this also refuses changes that break readers: a field number that carries
another kind of value, and a required field that the other side does not write (docs/adr/0022-schemas-of-protobuf-messages.md).
"""

import base64
import json
from collections.abc import Iterator, Mapping

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from .values import SchemaRefused

_KINDS: Mapping[int, str] = {
    **dict.fromkeys((3, 4, 5, 8, 13, 14), "varint"),
    **dict.fromkeys((17, 18), "zigzag varint"),
    **dict.fromkeys((6, 16), "64-bit integer"),
    **dict.fromkeys((7, 15), "32-bit integer"),
    **dict.fromkeys((9, 12), "string or bytes"),
    1: "double", 2: "float", 10: "group", 11: "message",
}  # fmt: skip
"""FieldDescriptorProto.Type: those of one kind may replace one another ("Updating A Message Type" of Protobuf's guide)."""

Messages = Mapping[str, DescriptorProto]


def check_protobuf(data: bytes) -> str:
    """The full name of the root message. SchemaRefused when it is no such definition."""
    return _parsed(data)[0]


def can_read(reader: bytes, writer: bytes) -> str | None:
    """None when messages of `writer` can be read as `reader`; otherwise why not. SchemaRefused."""
    (name, read), (written_name, written) = _parsed(reader), _parsed(writer)
    if name != written_name:
        return f"Protobuf root message isn't allow change! It was {written_name}, and is {name}"
    return next(_faults(name, read, written, {}), None)


def _parsed(data: bytes) -> tuple[str, Messages]:
    try:
        definition = json.loads(data)
        files = FileDescriptorSet.FromString(base64.b64decode(definition["fileDescriptorSet"], validate=True))
        root = str(definition["rootMessageTypeName"])
    except (ValueError, KeyError, TypeError, DecodeError, RecursionError) as error:
        raise SchemaRefused(f"deserialize ProtobufNative Schema failed: {error}") from error
    messages = {name: message for file in files.file for name, message in _messages(file.package, file.message_type)}
    if root not in messages:
        raise SchemaRefused(f"protobuf root message {root[:200]!r} is not among those of the file descriptors")
    return root, messages


def _messages(scope: str, messages: "object") -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:  # type: ignore[attr-defined]  # a repeated field, for which protobuf's stubs have no public name
        name = f"{scope}.{message.name}" if scope else message.name
        yield name, message
        yield from _messages(name, message.nested_type)


def _faults(name: str, read: Messages, written: Messages, seen: dict[str, None]) -> Iterator[str]:
    if name in seen or name not in read or name not in written:
        return
    seen[name] = None
    old = {field.number: field for field in written[name].field}
    new = {field.number: field for field in read[name].field}
    for number, field in new.items():
        if number not in old:
            if field.label == FieldDescriptorProto.LABEL_REQUIRED:
                yield f"{name}.{field.name} = {number} is required to read, and is not written"
            continue
        if _KINDS[field.type] != _KINDS[old[number].type]:
            yield f"{name}.{field.name} = {number} was a {_KINDS[old[number].type]}, and is a {_KINDS[field.type]}"
        elif field.type == FieldDescriptorProto.TYPE_MESSAGE:
            yield from _faults(field.type_name.lstrip("."), read, written, seen)
