"""Values by their schemas: what `--value-schema` makes of a text, and what `--schema-type auto_consume` makes of a payload.

Avro and JSON by Avro's own library, which is imported when there is such a schema; primitive types by hand. A type that is not
known here is shown as its bytes are.
"""

import json
import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from cli.admin.arguments import WrongUsage
from cli.client.errors import ClientError
from cli.client.topic import connection_of
from cli.client_configuration import ClientConfiguration
from wire.generated.pulsar_api_pb2 import BaseCommand, Schema

_NAME = "client"
"""The name that Apache's tool gives to the schema which it registers."""
_FORMATS: Mapping[int, tuple[str, str]] = {
    Schema.Bool: ("?", "Boolean"),
    Schema.Int8: ("b", "Byte"),
    Schema.Int16: (">h", "Short"),
    Schema.Int32: (">i", "Integer"),
    Schema.Int64: (">q", "Long"),
    Schema.Float: (">f", "Float"),
    Schema.Double: (">d", "Double"),
    Schema.Date: (">q", "Long"),
    Schema.Time: (">q", "Long"),
    Schema.Timestamp: (">q", "Long"),
}


class ValueSchema(NamedTuple):
    """A schema to produce with: None for bytes. `of_text` and `of_file` make payloads."""

    schema: Schema | None
    of_text: Callable[[str], bytes]
    of_file: Callable[[bytes], bytes]


class Value(NamedTuple):
    """A payload read by its schema; `java_type` of one that is no record, as Apache's tool prints it."""

    value: Any
    java_type: str = ""


def value_schema(text: str) -> ValueSchema:
    """The schema of `bytes`, `string`, `avro:DEFINITION` or `json:DEFINITION`. WrongUsage."""
    kind, _, definition = text.partition(":")
    if text == "bytes":
        return ValueSchema(None, str.encode, bytes)
    if text == "string":
        return ValueSchema(Schema(name=_NAME, schema_data=b"", type=Schema.String), str.encode, bytes)
    if kind not in ("avro", "json") or not definition:
        raise WrongUsage(f"--value-schema {text}: expected bytes, string, avro:DEFINITION or json:DEFINITION")
    parsed = _parsed_definition(definition)
    schema = Schema(name=_NAME, schema_data=definition.encode(), type=Schema.Avro if kind == "avro" else Schema.Json)

    def checked_text(message: str) -> bytes:
        datum = _datum(parsed, _json(message), "message")
        encoded = _encoded(parsed, datum)
        return encoded if kind == "avro" else message.encode()

    def checked_file(content: bytes) -> bytes:
        if kind == "json":
            return checked_text(content.decode(errors="replace"))
        _read(parsed, parsed, content)
        return content

    return ValueSchema(schema, checked_text, checked_file)


def _parsed_definition(definition: str) -> Any:
    from avro.errors import AvroException
    from avro.schema import parse

    try:
        return parse(definition)
    except (AvroException, ValueError) as error:
        raise WrongUsage(f"--value-schema: the definition is no Avro schema: {error}") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise WrongUsage(f"message {text!r}: not JSON, which this --value-schema wants: {error}") from None


def _encoded(schema: Any, datum: Any) -> bytes:
    from avro.errors import AvroException
    from avro.io import BinaryEncoder, DatumWriter

    written = BytesIO()
    try:
        DatumWriter(schema).write(datum, BinaryEncoder(written))
    except (AvroException, ValueError, TypeError, AttributeError) as error:
        raise WrongUsage(f"the message does not fit --value-schema: {error}") from None
    return written.getvalue()


def _datum(schema: Any, value: Any, path: str) -> Any:
    """Put right what JSON cannot say: bytes are texts, a member of a union may be wrapped in its name, defaults."""
    match schema.type:
        case "record":
            return _record(schema, value, path)
        case "array" if isinstance(value, list):
            return [_datum(schema.items, each, f"{path}[{number}]") for number, each in enumerate(value)]
        case "map" if isinstance(value, dict):
            return {key: _datum(schema.values, each, f"{path}.{key}") for key, each in value.items()}
        case "union":
            return _of_union(schema, value, path)
        case "bytes" | "fixed" if isinstance(value, str):
            return value.encode("latin-1", errors="replace")
    return value


def _record(schema: Any, value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongUsage(f"{path}: expected an object with the fields of {schema.name}, not {json.dumps(value)}")
    unknown = set(value) - {field.name for field in schema.fields}
    if unknown:
        raise WrongUsage(f"{path}: {schema.name} has no field {', '.join(sorted(unknown))}")
    found = {}
    for field in schema.fields:
        if field.name not in value and not field.has_default:
            raise WrongUsage(f"{path}: the field {field.name} of {schema.name} is missing, and has no default")
        found[field.name] = _datum(field.type, value.get(field.name, field.default), f"{path}.{field.name}")
    return found


def _of_union(schema: Any, value: Any, path: str) -> Any:
    if value is None:
        return None
    branches = {getattr(each, "fullname", each.type): each for each in schema.schemas}
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in branches:
        name, inner = next(iter(value.items()))
        return _datum(branches[name], inner, path)
    failures = []
    for branch in schema.schemas:
        try:
            datum = _datum(branch, value, path)
            _encoded(branch, datum)
        except WrongUsage as error:
            failures.append(str(error))
            continue
        return datum
    raise WrongUsage(f"{path}: {json.dumps(value)} fits no member of the union: {failures[-1]}")


def _read(written_with: Any, wanted: Any, payload: bytes) -> Any:
    from avro.errors import AvroException
    from avro.io import BinaryDecoder, DatumReader

    try:
        return DatumReader(written_with, wanted).read(BinaryDecoder(BytesIO(payload)))
    except (AvroException, ValueError, EOFError, IndexError, TypeError) as error:
        raise ClientError(f"{len(payload)} bytes that are no Avro of the schema: {error}") from None


def read_value(schema: Schema | None, payload: bytes) -> Value:
    """ClientError where the payload is not of the schema."""
    if schema is None or schema.type == Schema.NoSchema:
        return Value(payload, "class [B")
    if schema.type == Schema.String:
        return Value(payload.decode(errors="replace"), "class java.lang.String")
    if schema.type == Schema.Json:
        try:
            return Value(json.loads(payload))
        except ValueError as error:
            raise ClientError(f"{len(payload)} bytes that are no JSON, as the schema says: {error}") from None
    if schema.type == Schema.Avro:
        parsed = _parsed_definition(schema.schema_data.decode())
        return Value(_read(parsed, parsed, payload))
    if schema.type in _FORMATS:
        form, java = _FORMATS[schema.type]
        try:
            return Value(struct.unpack(form, payload)[0], f"class java.lang.{java}")
        except struct.error as error:
            raise ClientError(f"{len(payload)} bytes that are no {java}, as the schema says: {error}") from None
    return Value(payload, "class [B")


class TopicSchemas:
    """The schemas of topics by their versions, each asked for once."""

    def __init__(self, configuration: ClientConfiguration) -> None:
        self._configuration = configuration
        self._found: dict[tuple[str, bytes], Schema | None] = {}

    def find(self, topic: str, version: bytes) -> Schema | None:
        """None for a topic without one. ClientError."""
        if (topic, version) not in self._found:
            self._found[topic, version] = self._asked(topic, version)
        return self._found[topic, version]

    def _asked(self, topic: str, version: bytes) -> Schema | None:
        connection = connection_of(topic, self._configuration)
        try:
            asked = BaseCommand(type=BaseCommand.GET_SCHEMA)
            asked.get_schema.request_id, asked.get_schema.topic = connection.request_id(), topic
            if version:
                asked.get_schema.schema_version = version
            answer = connection.ask(asked, BaseCommand.GET_SCHEMA_RESPONSE).get_schema_response
        finally:
            connection.close()
        return None if answer.HasField("error_code") else answer.schema
