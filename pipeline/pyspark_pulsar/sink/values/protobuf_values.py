"""A struct column as protobuf messages of a definition that is made of the struct, field by field for all rows at a time. Pure.

Fields have the numbers of their places, from 1 on, and presence (proto3's optional), so that null is null again. Lists are
repeated fields, whose elements cannot be null: protobuf has no such thing.
"""

import base64
import json
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from ...decode.octets import Words
from ..errors import WrongFrame
from .pieces import Cells, grouped, is_null, joined, little_endian, piece, sizes_of, varints
from .value_schema import check_name

_TYPES = {
    pyarrow.bool_(): FieldDescriptorProto.TYPE_BOOL,
    pyarrow.int32(): FieldDescriptorProto.TYPE_INT32,
    pyarrow.int64(): FieldDescriptorProto.TYPE_INT64,
    pyarrow.float32(): FieldDescriptorProto.TYPE_FLOAT,
    pyarrow.float64(): FieldDescriptorProto.TYPE_DOUBLE,
    pyarrow.string(): FieldDescriptorProto.TYPE_STRING,
    pyarrow.binary(): FieldDescriptorProto.TYPE_BYTES,
}
_VARINT, _EIGHT, _SPAN, _FOUR = 0, 1, 2, 5
_FILE = "value.proto"


def native_definition(struct: Any) -> bytes:
    """Definition as the registry keeps PROTOBUF_NATIVE (ProtobufNativeSchemaData). WrongFrame for types without a form."""
    file = FileDescriptorProto(name=_FILE, syntax="proto3", message_type=[_message(struct, "Value", ".Value")])
    found = {
        "fileDescriptorSet": base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode(),
        "rootMessageTypeName": "Value",
        "rootFileDescriptorName": _FILE,
    }
    return json.dumps(found, separators=(",", ":")).encode()


def _message(struct: Any, name: str, path: str) -> DescriptorProto:
    message = DescriptorProto(name=name)
    for number, field in enumerate(struct, 1):
        check_name(field.name)
        is_list = pyarrow.types.is_list(field.type)
        kind = field.type.value_type if is_list else field.type
        found = message.field.add(name=field.name, number=number, json_name=field.name)
        found.label = FieldDescriptorProto.LABEL_REPEATED if is_list else FieldDescriptorProto.LABEL_OPTIONAL
        if pyarrow.types.is_struct(kind):
            nested = f"Of{number}"
            found.type, found.type_name = FieldDescriptorProto.TYPE_MESSAGE, f"{path}.{nested}"
            message.nested_type.append(_message(kind, nested, found.type_name))
        elif kind in _TYPES:
            found.type = _TYPES[kind]
        else:
            raise WrongFrame(f"column value: field {field.name} is {kind}, which protobuf does not have; cast it")
        if not is_list and not pyarrow.types.is_struct(kind):
            # proto3 marks presence by a oneof for each field
            found.proto3_optional, found.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
    return message


def protobuf_values(column: Any) -> Any:
    """Bytes of each row, null where the struct is. WrongFrame for a null in a list."""
    found = _struct(column)
    if not column.null_count:
        return found
    return pyarrow.compute.if_else(pyarrow.compute.is_null(column), pyarrow.scalar(None, pyarrow.binary()), found)


def _struct(column: Any) -> Any:
    parts = [_field(number, each) for number, each in enumerate(column.flatten(), 1)]
    return joined(parts) if parts else pyarrow.array([b""] * len(column), pyarrow.binary())


def _field(number: int, column: Any) -> Any:
    """Tag and value; nothing where it is null."""
    if pyarrow.types.is_list(column.type):
        return _repeated(number, column)
    there, count = ~is_null(column), len(column)
    kind = column.type
    if pyarrow.types.is_struct(kind) or kind in (pyarrow.string(), pyarrow.binary()):
        octets = protobuf_values(column) if pyarrow.types.is_struct(kind) else column.cast(pyarrow.binary())
        length = varints(sizes_of(octets).astype(numpy.uint64))
        return joined([piece(_tag(number, _SPAN, count).where(there), length.where(there)), octets])
    if pyarrow.types.is_floating(kind):
        value = little_endian(numpy.ascontiguousarray(pyarrow.compute.fill_null(column, 0.0)))
        return piece(_tag(number, _EIGHT if kind == pyarrow.float64() else _FOUR, count).where(there), value.where(there))
    filled = pyarrow.compute.fill_null(column, pyarrow.scalar(0).cast(kind))
    numbers: Words = numpy.asarray(filled.cast(pyarrow.int64())).view(numpy.uint64)
    return piece(_tag(number, _VARINT, count).where(there), varints(numbers).where(there))


def _repeated(number: int, column: Any) -> Any:
    if column.null_count:
        column = pyarrow.compute.fill_null(column, pyarrow.scalar([], column.type))
    offsets = numpy.asarray(column.offsets).astype(numpy.int64)
    items = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    if items.null_count:
        raise WrongFrame("column value: a null in a list, which protobuf does not have")
    return grouped(_field(number, items), offsets - offsets[0])


def _tag(number: int, kind: int, count: int) -> Cells:
    return varints(numpy.full(count, number << 3 | kind, numpy.uint64))
