"""Schemas of topics as the registry has them, by the binary protocol. A version never changes, so each is asked for once."""

from collections.abc import Iterable

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandGetSchema, KeyValue, ServerError
from wire.generated.pulsar_api_pb2 import Schema as RegistrySchema

from ..decode.typed import Schema
from ..errors import Refused
from ..options import Access
from .brokers import partitioned_name, tried_again
from .connection import Connection, Lost

_NAMES = {
    "None": "NONE",
    "Json": "JSON",
    "Bool": "BOOLEAN",
    "KeyValue": "KEY_VALUE",
    "ProtobufNative": "PROTOBUF_NATIVE",
    "LocalDate": "LOCAL_DATE",
    "LocalTime": "LOCAL_TIME",
    "LocalDateTime": "LOCAL_DATE_TIME",
}
_VERSIONS_KEPT_MAX = 1_000
_known: dict[tuple[str, str, int], Schema | None] = {}


def latest_schema(topic: str, access: Access) -> Schema | None:
    """None for a topic without one. Refused, Unreachable."""
    return tried_again(topic, access, lambda: _asked(topic, access, b""))


def schema_version(topic: str, access: Access, version: int) -> Schema | None:
    """None where it is not there (any more). Refused, Unreachable."""
    place = access.service_url, partitioned_name(topic), version
    if place not in _known:
        if len(_known) >= _VERSIONS_KEPT_MAX:
            _known.clear()
        _known[place] = tried_again(topic, access, lambda: _asked(topic, access, version.to_bytes(8)))
    return _known[place]


def _asked(topic: str, access: Access, version: bytes) -> Schema | None:
    connection = Connection(access.service_url, access)
    try:
        asked = CommandGetSchema(request_id=connection.request_id(), topic=partitioned_name(topic))
        if version:
            asked.schema_version = version
        command = BaseCommand(type=BaseCommand.GET_SCHEMA)
        command.get_schema.CopyFrom(asked)
        answer = connection.ask(command, BaseCommand.GET_SCHEMA_RESPONSE).get_schema_response
    finally:
        connection.close()
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
