"""Schemas of topics as the registry has them, by the binary protocol.

Nothing is kept: a version never changes, but a topic that was deleted and made again has another one of the same number, and
processes of Spark's live longer than that. A reader that asks often keeps the answer for as long as it reads.
"""

from collections.abc import Iterable, Sequence

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandGetSchema, CommandGetSchemaResponse, KeyValue, ServerError
from wire.generated.pulsar_api_pb2 import Schema as RegistrySchema

from ..decode.values.typed import Schema
from ..errors import Refused
from ..names import partitioned_name
from ..options import Access
from .brokers import tried_again
from .connection import Connection, Lost

_NAMES = {
    "NoSchema": "NONE",
    "Json": "JSON",
    "Bool": "BOOLEAN",
    "KeyValue": "KEY_VALUE",
    "ProtobufNative": "PROTOBUF_NATIVE",
    "LocalDate": "LOCAL_DATE",
    "LocalTime": "LOCAL_TIME",
    "LocalDateTime": "LOCAL_DATE_TIME",
}
_AT_ONCE = 100
"""Questions that are on their way together."""


def latest_schemas(topics: Sequence[str], access: Access) -> list[Schema | None]:
    """Latest schema of each topic in order, None without one: over one connection, many at a time. Refused, Unreachable."""
    if not topics:
        return []
    of_which = topics[0] if len(topics) == 1 else f"{topics[0]} and {len(topics) - 1} more"
    return tried_again(of_which, access, lambda: _latest(topics, access))


def _latest(topics: Sequence[str], access: Access) -> list[Schema | None]:
    found: list[Schema | None] = []
    connection = Connection(access.service_url, access)
    try:
        for first in range(0, len(topics), _AT_ONCE):
            some = topics[first : first + _AT_ONCE]
            questions = [_question(connection, topic, b"") for topic in some]
            answers = {
                each.get_schema_response.request_id: each.get_schema_response
                for each in connection.ask_all(questions, BaseCommand.GET_SCHEMA_RESPONSE)
            }
            found += [
                _answered(topic, answers[question.get_schema.request_id])
                for topic, question in zip(some, questions, strict=True)
            ]
    finally:
        connection.close()
    return found


def schema_version(topic: str, access: Access, version: int) -> Schema | None:
    """None where it is not there (any more). Refused, Unreachable."""
    return tried_again(topic, access, lambda: _asked(topic, access, version.to_bytes(8)))


def _asked(topic: str, access: Access, version: bytes) -> Schema | None:
    connection = Connection(access.service_url, access)
    try:
        answer = connection.ask(_question(connection, topic, version), BaseCommand.GET_SCHEMA_RESPONSE)
        return _answered(topic, answer.get_schema_response)
    finally:
        connection.close()


def _question(connection: Connection, topic: str, version: bytes) -> BaseCommand:
    asked = CommandGetSchema(request_id=connection.request_id(), topic=partitioned_name(topic))
    if version:
        asked.schema_version = version
    return BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=asked)


def _answered(topic: str, answer: CommandGetSchemaResponse) -> Schema | None:
    if not answer.HasField("error_code"):
        return _schema(answer.schema)
    if answer.error_code == ServerError.TopicNotFound:
        return None
    said = f"{topic}: its schema: {ServerError.Name(answer.error_code)}: {answer.error_message}"
    raise (Lost if answer.error_code in (ServerError.ServiceNotReady, ServerError.UnknownError) else Refused)(said)


def _schema(found: RegistrySchema) -> Schema:
    name = RegistrySchema.Type.Name(found.type)
    pairs: Iterable[KeyValue] = found.properties
    properties = tuple(sorted((each.key, each.value) for each in pairs))
    return Schema(_NAMES.get(name, name.upper()), found.schema_data, properties)
