"""The context of a command that needs code: the connection to the server, the values, the place of the output."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cli.admin.http import Answer
from cli.admin.output import parse
from cli.admin.request import Request


class Asking(Protocol):
    """A connection to the admin REST."""

    def ask(self, request: Request) -> Answer: ...


class Context:
    """Context of one run of a command."""

    def __init__(self, connection: Asking, values: Mapping[str, Any], write: Callable[[str], None], as_json: bool) -> None:
        self.connection = connection
        self.values = values
        self.write = write
        self.as_json = as_json

    def ask(self, request: Request) -> Any:
        """The answer as a value: JSON where it is JSON, text where it is not, None when it is empty. Refused, Unreachable."""
        return value_of(self.connection.ask(request))

    def get(self, path: str) -> Any:
        return self.ask(Request("GET", path))


class CommandFailed(Exception):
    """The command cannot do it; the text says why."""


def value_of(answer: Answer) -> Any:
    text = answer.body.decode(errors="replace")
    if not text:
        return None
    try:
        return parse(text)
    except ValueError:
        return text
