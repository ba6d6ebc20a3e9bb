"""Declaration of a route of the admin REST: its request, its answer, and the permission that it needs.

Everything else is made from these declarations: the routing (`dispatch`), the OpenAPI page (`openapi`), and the permission
(`Access`, which the dispatcher gives to the authorizer). Pure data.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...security.authorization.needs import Kind

Handler = Callable[[Request], Awaitable[Response]]

_PARAMETER = re.compile(r"\{(\w+)(?::(path|int))?\}")


@dataclass(frozen=True, slots=True)
class Access:
    """Permission needed: `operation` is a constant of Apache's enum for the kind; `writes` matters to the policies' kinds."""

    kind: Kind
    operation: str = ""
    writes: bool = False


ANYBODY = Access(Kind.ANYBODY)
AUTHENTICATED = Access(Kind.AUTHENTICATED)
SUPER_USER = Access(Kind.SUPER_USER)
TENANT_ADMIN = Access(Kind.TENANT_ADMIN)


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter after the `?`: bool, int or str, or an enumeration of str. Left out, it is `default`."""

    name: str
    type: Any = str
    default: Any = None
    description: str = ""


class Text(StrEnum):
    """The answer is bare text, not JSON."""

    TEXT = "text/plain"
    LABELLED_JSON = "application/json"
    """Text that Apache labels as JSON unless the client asks for something else."""
    HTML = "text/html"
    BYTES = "application/octet-stream"
    NOTHING = ""
    """200 without a body, where Apache answers so."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path. The first line of the handler's docstring is its summary."""

    method: str
    path: str
    """Parameters in braces, each one segment of the path as it was sent, decoded; `{name:int}` is a number, `{name:path}` takes
    all that is left."""
    handler: Handler
    access: Access = SUPER_USER
    query: tuple[Query, ...] = ()
    body: Any = None
    """A type that msgspec reads (`request.state.body` is one of it), or `Text.TEXT`. None: there is none, or the handler reads
    it itself."""
    body_optional: bool = False
    """An empty body is let through, as None."""
    answer: Any = None
    """A type that msgspec describes, or `Text`; None: 204 without a body, which also is the answer for a value that is not set.
    """
    summary: str = ""
    """Summary in place of the handler's docstring, for a handler that serves many paths."""

    @property
    def parameters(self) -> dict[str, type]:
        """The names in the path, in its order, with int or str."""
        return {match[1]: int if match[2] == "int" else str for match in _PARAMETER.finditer(self.path)}

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(segment for segment in self.path.split("/") if segment)

    @property
    def described(self) -> str:
        """One line."""
        lines = (self.summary or self.handler.__doc__ or "").strip().splitlines()
        return lines[0] if lines else f"{self.method} {self.path}"
