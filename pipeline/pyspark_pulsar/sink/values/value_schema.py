"""A struct's type as the Avro record that Pulsar's registry keeps, for Avro and for JSON. Pure.

Every field may be null and is so by default, as in the schemas that Apache's clients make of classes: then fields can be
added and left out later. Types are Avro's names for Spark's.
"""

import re
from typing import Any

import pyarrow

from ..errors import WrongFrame

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    pyarrow.bool_(): "boolean",
    pyarrow.int8(): "int",
    pyarrow.int16(): "int",
    pyarrow.int32(): "int",
    pyarrow.int64(): "long",
    pyarrow.float32(): "float",
    pyarrow.float64(): "double",
    pyarrow.string(): "string",
    pyarrow.binary(): "bytes",
    pyarrow.date32(): {"type": "int", "logicalType": "date"},
}


def avro_definition(struct: Any, name: str = "value") -> Any:
    """A record, whose nested records are named by their place. WrongFrame for a type that neither encoding has."""
    for field in struct:
        check_name(field.name)
    fields = [
        {"name": field.name, "type": ["null", _type(field.type, f"{name}_{field.name}")], "default": None} for field in struct
    ]
    return {"type": "record", "name": name, "fields": fields}


def check_name(name: str) -> None:
    """WrongFrame for one that neither Avro nor protobuf has: brokers and other clients would not read the definition."""
    if not _NAME.fullmatch(name):
        raise WrongFrame(f"column value: field {name!r}: names have letters of ASCII, digits and '_'; call it otherwise (AS)")


def _type(found: Any, name: str) -> Any:
    if found in _PLAIN:
        return _PLAIN[found]
    if pyarrow.types.is_timestamp(found):
        return {"type": "long", "logicalType": "timestamp-micros" if found.tz else "local-timestamp-micros"}
    if pyarrow.types.is_struct(found):
        return avro_definition(found, name)
    if pyarrow.types.is_decimal128(found):
        return {"type": "bytes", "logicalType": "decimal", "precision": found.precision, "scale": found.scale}
    if pyarrow.types.is_map(found) and pyarrow.types.is_string(found.key_type):
        return {"type": "map", "values": ["null", _type(found.item_type, f"{name}_value")]}
    if pyarrow.types.is_list(found):
        return {"type": "array", "items": ["null", _type(found.value_type, f"{name}_item")]}
    raise WrongFrame(
        f"column value: field {name.removeprefix('value_')} is {found}, which cannot be encoded; cast it, or to_json(...)"
    )
