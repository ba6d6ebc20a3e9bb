"""The column `value` as payloads, and with a schema of its own the column `key` as well (KeyValue).

Bytes and text as they are, or what an option says, with a schema that the topic learns. Pure.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow

from wire.generated.pulsar_api_pb2 import KeyValue, Schema

from ...decode.values.primitives import is_primitive
from ..errors import WrongFrame
from ..messages import Keys, base64_keys
from .avro_values import avro_values
from .json_values import json_values
from .pieces import big_endian, is_null, joined, piece, sizes_of
from .primitive_values import check_primitive, primitive_kind, primitive_values
from .protobuf_values import native_definition, protobuf_values
from .value_schema import avro_definition

_OF_STRUCTS = ("AVRO", "JSON", "PROTOBUF_NATIVE")
_TYPES = {
    "AVRO": Schema.Avro,
    "JSON": Schema.Json,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
    "STRING": Schema.String,
    "BOOLEAN": Schema.Bool,
    "INT8": Schema.Int8,
    "INT16": Schema.Int16,
    "INT32": Schema.Int32,
    "INT64": Schema.Int64,
    "FLOAT": Schema.Float,
    "DOUBLE": Schema.Double,
    "DATE": Schema.Date,
    "TIME": Schema.Time,
    "TIMESTAMP": Schema.Timestamp,
    "INSTANT": Schema.Instant,
    "LOCAL_DATE": Schema.LocalDate,
    "LOCAL_TIME": Schema.LocalTime,
    "LOCAL_DATE_TIME": Schema.LocalDateTime,
}
KINDS = ("NONE", "AUTO", *_TYPES, "BYTES")
"""Values of the options valueSchema and keySchema."""


@dataclass(frozen=True, slots=True)
class ValueEncoder:
    """`kind`: as the option valueSchema says, and no AUTO. `type`: of the column, in Arrow's terms.

    `key`: of a KeyValue, whose key is a part of the payload or, `is_separated`, the message's.
    """

    kind: str
    type: Any
    key: "ValueEncoder | None" = None
    is_separated: bool = True

    def schema(self) -> Schema | None:
        """Schema that a producer registers. None: bytes."""
        if self.key is not None:
            return _pair_schema(self.key, self, self.is_separated)
        if self.kind in ("NONE", "BYTES"):
            return None
        return Schema(name="value", schema_data=self.definition(), type=_TYPES[self.kind])

    def definition(self) -> bytes:
        """WrongFrame for a type that the encoding does not have."""
        if self.kind == "PROTOBUF_NATIVE":
            return native_definition(self.type)
        return json.dumps(avro_definition(self.type), separators=(",", ":")).encode() if self.kind in _OF_STRUCTS else b""

    def encoded(self, column: Any) -> Any:
        """An array of bytes; null stays null."""
        match self.kind:
            case "NONE":
                return column.cast(pyarrow.binary())
            case "AVRO":
                return avro_values(column)
            case "JSON":
                return json_values(column)
            case "PROTOBUF_NATIVE":
                return protobuf_values(column)
        return primitive_values(self.kind, column)

    def pairs(self, batch: Any) -> tuple[Keys | None, Any]:
        """Keys and payloads of KeyValue messages. WrongFrame without a column key."""
        assert self.key is not None
        keys, values = self.key.encoded(batch.column("key")), self.encoded(batch.column("value"))
        return (base64_keys(keys), values) if self.is_separated else (None, joined([_sized(keys), _sized(values)]))


def _sized(octets: Any) -> Any:
    """`i32 length | octets`, a length of -1 for null (KeyValue.encode of Apache's client)."""
    lengths = numpy.where(is_null(octets), -1, sizes_of(octets))
    return joined([piece(big_endian(lengths)), octets])


def _pair_schema(key: ValueEncoder, value: ValueEncoder, is_separated: bool) -> Schema:
    """Schema in the form of KeyValueSchemaInfo of Apache's client."""
    data = b"".join(len(each).to_bytes(4) + each for each in (key.definition(), value.definition()))
    properties = {"kv.encoding.type": "SEPARATED" if is_separated else "INLINE"}
    for name, each in (("key", key), ("value", value)):
        kind = "BYTES" if each.kind == "NONE" else each.kind
        properties |= {f"{name}.schema.name": name, f"{name}.schema.type": kind, f"{name}.schema.properties": "{}"}
    told = [KeyValue(key=name, value=text) for name, text in properties.items()]
    return Schema(name="KeyValue", schema_data=data, type=Schema.KeyValue, properties=told)


def value_encoder(kind: str, found: Any) -> ValueEncoder:
    """WrongFrame when the type of the column and the option valueSchema do not go together."""
    is_struct = pyarrow.types.is_struct(found)
    if kind == "AUTO":
        kind = "AVRO" if is_struct else primitive_kind(found) or "NONE"
    if kind == "NONE" and not (pyarrow.types.is_string(found) or pyarrow.types.is_binary(found)):
        hint = "valueSchema=avro or valueSchema=json" if is_struct else "a cast, or struct(...) with valueSchema=avro"
        raise WrongFrame(f"column value is {found}: expected string or binary; use {hint}")
    if kind in _OF_STRUCTS and not is_struct:
        raise WrongFrame(f"column value is {found}: valueSchema={kind.lower()} is for a struct of the columns")
    if is_primitive(kind) and kind != "NONE":
        check_primitive(kind, found)
    encoder = ValueEncoder(kind, found)
    encoder.schema()
    return encoder


def pair_encoder(kinds: tuple[str, str], types: tuple[Any, Any], is_separated: bool) -> ValueEncoder:
    """Encoder of key and value. WrongFrame for either."""
    key, value = (value_encoder(kind, found) for kind, found in zip(kinds, types, strict=True))
    return ValueEncoder(value.kind, value.type, key, is_separated)
