"""Routes for schemas (Apache: SchemasResource). No schema is ever found; to make one is refused."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .answers import Refusal
from .endpoints import TENANT_ADMIN, Access, Endpoint, Scope
from .namespace_policy_table import SCHEMAS

_TOPIC = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"


class SchemaRoutes:
    """The handlers; one instance per server."""

    def routes(self) -> list[Endpoint]:
        get, produce = Access(Scope.TOPIC, "GET_METADATA"), Access(Scope.TOPIC, "PRODUCE")
        schema = _TOPIC + "/schema"
        return [
            Endpoint("GET", schema, self.get, get, answer=dict[str, Any]),
            Endpoint("GET", schema + "/{version:int}", self.get, get, answer=dict[str, Any]),
            Endpoint("GET", _TOPIC + "/schemas", self.get, get, answer=dict[str, Any]),
            Endpoint("GET", _TOPIC + "/metadata", self.get, get, answer=dict[str, Any]),
            Endpoint("DELETE", schema, self.get, TENANT_ADMIN),
            Endpoint("POST", schema, self.post, produce),
            Endpoint("POST", _TOPIC + "/compatibility", self.post, TENANT_ADMIN),
            Endpoint("POST", _TOPIC + "/version", self.post, get),
        ]

    async def get(self, request: Request) -> Response:
        """There is none (404)."""
        raise Refusal(404, "Schema not found")

    async def post(self, request: Request) -> Response:
        """Not supported."""
        raise Refusal(501, f"Schemas are not supported: {SCHEMAS}")
