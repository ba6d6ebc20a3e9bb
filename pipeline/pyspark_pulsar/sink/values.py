"""The column `value` as payloads.

Bytes and text as they are, a struct as Avro or JSON with a schema that the topic learns. Pure.
"""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow

from wire.generated.pulsar_api_pb2 import Schema

from .avro_values import avro_values
from .errors import WrongFrame
from .json_values import json_values
from .value_schema import avro_definition


@dataclass(frozen=True, slots=True)
class ValueEncoder:
    """`kind`: NONE, AVRO or JSON, as the option valueSchema says. `type`: of the column, in Arrow's terms."""

    kind: str
    type: Any

    def schema(self) -> Schema | None:
        """What a producer registers. None: bytes."""
        if self.kind == "NONE":
            return None
        kind = Schema.Avro if self.kind == "AVRO" else Schema.Json
        definition = json.dumps(avro_definition(self.type), separators=(",", ":"))
        return Schema(name="value", schema_data=definition.encode(), type=kind)

    def encoded(self, column: Any) -> Any:
        """An array of bytes; null stays null."""
        if self.kind == "NONE":
            return column.cast(pyarrow.binary())
        return avro_values(column) if self.kind == "AVRO" else json_values(column)


def value_encoder(kind: str, found: Any) -> ValueEncoder:
    """WrongFrame when the type of the column and the option valueSchema do not go together."""
    is_struct = pyarrow.types.is_struct(found)
    if kind == "NONE" and not (pyarrow.types.is_string(found) or pyarrow.types.is_binary(found)):
        hint = "valueSchema=avro or valueSchema=json" if is_struct else "a cast, or struct(...) with valueSchema=avro"
        raise WrongFrame(f"column value is {found}: expected string or binary; use {hint}")
    if kind != "NONE" and not is_struct:
        raise WrongFrame(f"column value is {found}: valueSchema={kind.lower()} is for a struct of the columns")
    encoder = ValueEncoder(kind, found)
    encoder.schema()
    return encoder
