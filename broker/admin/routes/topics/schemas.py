"""Routes for schemas (Apache: SchemasResource). Owns nothing; the registry decides about compatibility.

Statuses and members as an Apache Pulsar 4.0.8 answers them; where that answers 500 or never (an unknown type, a schema that
does not fit at /compatibility), the status names the fault. A schema is answered by any broker.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ....errors import BrokerError, ServerError
from ....schema.key_value import join_key_value, split_key_value
from ....schema.values import SchemaData, SchemaRefused, SchemaType, VersionedSchema
from ....security.authorization.needs import Kind
from ....service.topic_name import TopicName
from ....service.topic_schemas import TopicSchemas, schema_id
from ...rest.answers import Refusal, json_answer
from ...rest.endpoints import TENANT_ADMIN, Access, Endpoint, Query
from ...rest.names import topic_of

_TOPIC = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
NOT_FOUND = "Schema not found"


class PostSchemaPayload(msgspec.Struct):
    """A definition, as text; of a KeyValue schema `{"key": ..., "value": ...}`."""

    type: str
    schema: str = ""
    properties: dict[str, str] = {}


class SchemaRoutes:
    """The handlers; one instance per server."""

    def __init__(self, schemas: TopicSchemas) -> None:
        self._schemas = schemas

    def routes(self) -> list[Endpoint]:
        get, produce = Access(Kind.TOPIC, "GET_METADATA"), Access(Kind.TOPIC, "PRODUCE")
        forced = (Query("force", bool, False, "Everything that was ever stored of it, so that the next is version 0."),)
        schema, body, answer = _TOPIC + "/schema", PostSchemaPayload, dict[str, Any]
        return [
            Endpoint("GET", schema, self.get, get, answer=answer),
            Endpoint("GET", schema + "/{version:int}", self.version, get, answer=answer),
            Endpoint("GET", _TOPIC + "/schemas", self.versions, get, answer=answer),
            Endpoint("GET", _TOPIC + "/metadata", self.metadata, get, answer=answer),
            Endpoint("DELETE", schema, self.delete, TENANT_ADMIN, query=forced, answer=answer),
            Endpoint("POST", schema, self.put, produce, body=body, answer=answer),
            Endpoint("POST", _TOPIC + "/compatibility", self.check, TENANT_ADMIN, body=body, answer=answer),
            Endpoint("POST", _TOPIC + "/version", self.find, get, body=body, answer=answer),
        ]

    async def get(self, request: Request) -> Response:
        """The newest version."""
        return _one(await self._schemas.latest(topic_of(request)))

    async def version(self, request: Request) -> Response:
        """One version."""
        versions = await self._versions(topic_of(request))
        return _one(next((each for each in versions if each.version == request.path_params["version"]), None))

    async def versions(self, request: Request) -> Response:
        """All versions since the last deletion, oldest first."""
        found = await self._versions(topic_of(request))
        return json_answer({"getSchemaResponses": [_document(each) for each in found]})

    async def metadata(self, request: Request) -> Response:
        """The ledgers and entries in which the versions are."""
        places = await self._schemas.places(topic_of(request))
        if not places:
            raise Refusal(404, NOT_FOUND)
        index = [{"ledgerId": ledger, "entryId": entry, "version": version} for version, ledger, entry in places]
        return json_answer({"info": index[-1], "index": index})

    async def delete(self, request: Request) -> Response:
        """Say that the topic has no schema any more; the versions before are not answered from then on."""
        force = request.query_params.get("force", "false") == "true"
        found = await self._schemas.delete(topic_of(request), _user(request), force=force)
        return json_answer({"version": -1 if found is None or force else found})

    async def put(self, request: Request) -> Response:
        """Make it the topic's newest, unless it is one of its versions already."""
        topic, schema = topic_of(request), _schema(request)
        version = await self._said(self._schemas.put(topic, schema))
        return json_answer({"version": {"version": version}})

    async def check(self, request: Request) -> Response:
        """Whether it may follow those that are there."""
        topic, schema = topic_of(request), _schema(request)
        strategy = await self._schemas.strategy(topic)
        try:
            await self._schemas.registry.check_compatible(schema_id(topic), schema, strategy)
        except SchemaRefused:
            return json_answer({"schemaCompatibilityStrategy": strategy, "compatibility": False}, 202)
        return json_answer({"schemaCompatibilityStrategy": strategy, "compatibility": True}, 202)

    async def find(self, request: Request) -> Response:
        """The version that it is, -1 if it is none."""
        found = await self._schemas.registry.find(schema_id(topic_of(request)), _schema(request))
        return json_answer({"version": -1 if found is None else found})

    async def _versions(self, topic: TopicName) -> tuple[VersionedSchema, ...]:
        return await self._schemas.registry.versions(schema_id(topic))

    async def _said(self, work: Any) -> int:
        try:
            version: int = await work
        except BrokerError as failure:
            if failure.code == ServerError.INCOMPATIBLE_SCHEMA:
                raise Refusal(422 if failure.message.startswith("Invalid") else 409, failure.message) from failure
            raise
        return version


def _user(request: Request) -> str:
    return str(getattr(request.state, "role", "") or "")


def _schema(request: Request) -> SchemaData:
    body: PostSchemaPayload = request.state.body
    if body.type != "BYTES" and body.type not in SchemaType.__members__:
        raise Refusal(422, f"{body.type[:100]!r} is no type of schema: one of {', '.join(SchemaType.__members__)}")
    kind = SchemaType.NONE if body.type == "BYTES" else SchemaType[body.type]
    data = _key_value_data(body.schema) if kind == SchemaType.KEY_VALUE else body.schema.encode()
    return SchemaData(kind, data, body.properties, _user(request))


def _key_value_data(text: str) -> bytes:
    try:
        parts = json.loads(text)
        return join_key_value(*(_part_data(parts[name]) for name in ("key", "value")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f'Invalid schema definition data for KEY_VALUE schema: expected {{"key":...,"value":...}}: {error}'
        raise Refusal(422, reason) from error


def _part_data(part: Any) -> bytes:
    return b"" if part == "" else json.dumps(part, separators=(",", ":")).encode()


def _one(found: VersionedSchema | None) -> Response:
    if found is None:
        raise Refusal(404, NOT_FOUND)
    return json_answer(_document(found))


def _document(found: VersionedSchema) -> Mapping[str, Any]:
    schema = found.schema
    return {
        "version": found.version,
        "type": "BYTES" if schema.type == SchemaType.NONE else schema.type.name,
        "timestamp": schema.timestamp_ms,
        "data": _text(schema),
        "properties": dict(schema.properties),
    }


def _text(schema: SchemaData) -> str:
    if schema.type != SchemaType.KEY_VALUE:
        return schema.data.decode(errors="replace")
    parts = split_key_value(schema)
    return json.dumps({"key": _json(parts.key.data), "value": _json(parts.value.data)}, separators=(",", ":"))


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")
