"""Definitions of the registry's two protobuf schemas, as messages with fields, and those as Arrow types. Pure.

PROTOBUF_NATIVE has the descriptors of all; PROTOBUF the numbers of the outermost message's fields alone (`__PARSING_INFO__`),
so that messages in it stay bytes.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from .avro_schema import UnusableSchema

VARINTS = ("INT32", "INT64", "UINT32", "UINT64", "SINT32", "SINT64", "BOOL", "ENUM")
_TYPES = {
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), pyarrow.int32()),
    **dict.fromkeys(("INT64", "SINT64", "SFIXED64", "UINT32", "UINT64", "FIXED32", "FIXED64"), pyarrow.int64()),
    "BOOL": pyarrow.bool_(),
    "FLOAT": pyarrow.float32(),
    "DOUBLE": pyarrow.float64(),
    "STRING": pyarrow.string(),
    "ENUM": pyarrow.string(),
    "BYTES": pyarrow.binary(),
}


@dataclass(frozen=True, slots=True)
class Field:
    """`kind` is the name of the protobuf type. `has_presence`: null where it is not there, else 0 or nothing.

    `choice`: which `oneof` of its message it is in, -1 for none. `is_closed`: an enumeration whose other numbers are unknown
    fields, as in proto2. `is_checked`: text that is not UTF-8 makes the message unreadable, as in proto3.
    """

    number: int
    name: str
    kind: str
    is_repeated: bool = False
    has_presence: bool = True
    message: "Message | None" = None
    symbols: tuple[tuple[int, str], ...] = ()
    choice: int = -1
    is_closed: bool = False
    is_checked: bool = False

    @property
    def is_map(self) -> bool:
        return self.message is not None and self.message.is_map_entry


@dataclass(frozen=True, slots=True)
class Message:
    """`is_map_entry`: the pairs of a map."""

    name: str
    fields: tuple[Field, ...]
    is_map_entry: bool = False


def parse_native(data: bytes) -> Message:
    """Message of a PROTOBUF_NATIVE schema. UnusableSchema."""
    try:
        found = json.loads(data)
        files = FileDescriptorSet.FromString(base64.b64decode(found["fileDescriptorSet"]))
        root = str(found["rootMessageTypeName"])
    except (ValueError, KeyError, TypeError, DecodeError) as error:
        raise UnusableSchema(f"the definition is none of PROTOBUF_NATIVE: {error!r}") from None
    return _Descriptors(files).message("." + root.lstrip("."), ())


def parse_numbers(properties: Mapping[str, str], data: bytes, name: str) -> Message:
    """Message of a PROTOBUF schema. UnusableSchema.

    Whether a field that is not there is null in Java cannot be told from its number; its getter gives the default, which the
    definition (Avro's, by ProtobufData) has: where that is 0 or nothing, so does the column.
    """
    try:
        without = _without_presence(json.loads(data))
        found = json.loads(properties["__PARSING_INFO__"])
        fields = [
            Field(
                int(each["number"]),
                each["name"],
                {"MESSAGE": "BYTES", "GROUP": "BYTES", "ENUM": "INT32"}.get(each["type"], each["type"]),
                each.get("label") == "LABEL_REPEATED",
                has_presence=each["name"] not in without,
            )
            for each in found
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnusableSchema(f"the definition has no __PARSING_INFO__ that can be read: {error!r}") from None
    return Message(name, tuple(fields))


def _without_presence(definition: Any) -> set[str]:
    """Fields of Avro's definition whose default is 0, false or empty; enumerations have names as theirs."""
    fields = definition.get("fields", ())
    return {each["name"] for each in fields if "default" in each and each["default"] in (0, "", False)}


class _Descriptors:
    def __init__(self, files: FileDescriptorSet) -> None:
        self._messages: dict[str, tuple[DescriptorProto, bool]] = {}
        self._enums: dict[str, tuple[tuple[tuple[int, str], ...], bool]] = {}
        for file in files.file:
            prefix = f".{file.package}" if file.package else ""
            self._learn(file, prefix, file.syntax, file.message_type)

    def _learn(self, owner: Any, prefix: str, syntax: str, messages: Any) -> None:
        for enum in owner.enum_type:
            symbols = {each.number: each.name for each in reversed(enum.value)}  # the first of two names counts
            self._enums[f"{prefix}.{enum.name}"] = tuple(symbols.items())[::-1], syntax in ("", "proto2")
        for message in messages:
            self._messages[f"{prefix}.{message.name}"] = (message, syntax == "proto3")
            self._learn(message, f"{prefix}.{message.name}", syntax, message.nested_type)

    def message(self, name: str, within: tuple[str, ...]) -> Message:
        if name in within:
            raise UnusableSchema(f"message {name[1:]} contains itself, which no column can")
        if name not in self._messages:
            raise UnusableSchema(f"message {name[1:]} is not defined")
        found, is_proto3 = self._messages[name]
        is_entry = found.options.map_entry
        fields = tuple(self._field(each, is_proto3, is_entry, (*within, name)) for each in found.field)
        return Message(found.name, fields, is_entry)

    def _field(self, found: FieldDescriptorProto, is_proto3: bool, is_in_entry: bool, within: tuple[str, ...]) -> Field:
        """A map's keys and values are always there."""
        kind = FieldDescriptorProto.Type.Name(found.type).removeprefix("TYPE_")
        has_presence = not is_proto3 or found.proto3_optional or found.HasField("oneof_index") or kind == "MESSAGE"
        symbols, is_closed = self._enums.get(found.type_name, ((), False))
        return Field(
            found.number,
            found.name,
            kind,
            found.label == FieldDescriptorProto.LABEL_REPEATED,
            has_presence and not is_in_entry,
            self.message(found.type_name, within) if kind == "MESSAGE" else None,
            symbols,
            found.oneof_index if found.HasField("oneof_index") and not found.proto3_optional else -1,
            is_closed and kind == "ENUM",
            is_proto3 and kind == "STRING",
        )


def arrow_type(message: Message) -> Any:
    """UnusableSchema for a message without fields, which is no column."""
    if not message.fields:
        raise UnusableSchema(f"message {message.name} has no fields, and a column of nothing cannot be")
    return pyarrow.struct([(field.name, _field_type(field)) for field in message.fields])


def _field_type(field: Field) -> Any:
    one = single_type(field)
    if field.is_map:
        return pyarrow.map_(one.field(0).type, one.field(1).type)
    return pyarrow.list_(pyarrow.field("element", one)) if field.is_repeated else one


def single_type(field: Field) -> Any:
    """Arrow type of a field, or of one item of a repeated field."""
    if field.message is not None:
        return arrow_type(field.message)
    if field.kind not in _TYPES:
        raise UnusableSchema(f"field {field.name} is of protobuf's type {field.kind}, which cannot become a column")
    return _TYPES[field.kind]
