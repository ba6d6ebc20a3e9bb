"""The audit log: one line for each mutation that is asked for over REST, with who, what, from where and how it ended.

For brokers and bookies alike. Requests that change nothing (GET, HEAD, OPTIONS) have no line. Bodies are shown as far as they
are JSON and short; the values of members and keys that hold secrets are not. Owns nothing: the line's own file is set up by
the process.
"""

import asyncio
import json
import logging
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ports.logs import line
from ports.settings import is_secret

log = logging.getLogger("audit")

MASK = "*****"
BODY_BYTES_SHOWN_MAX = 2048
REASON_CHARACTERS_MAX = 300
_READS = ("GET", "HEAD", "OPTIONS")
_CONFIGURATION = "/admin/v2/brokers/configuration/"


class Audit:
    """Around the whole application, so that refusals have their line too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READS or not log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        heard = _Heard(receive, send)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self._app(scope, heard.receive, heard.send)
        finally:
            _tell(scope, heard, int(1000 * (loop.time() - began)))


class _Heard:
    """Facts of a request and its answer, as they pass."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self.body, self.body_size = b"", 0
        self.status = 0
        self.answer = b""

    async def receive(self) -> Message:
        message = await self._receive()
        part = message.get("body", b"")
        self.body_size += len(part)
        self.body += part[: BODY_BYTES_SHOWN_MAX - len(self.body)]
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self.status >= 400:
            self.answer += message.get("body", b"")[: BODY_BYTES_SHOWN_MAX - len(self.answer)]
        await self._send(message)


def _tell(scope: Scope, heard: _Heard, milliseconds: int) -> None:
    caller = scope.get("state", {}).get("caller")
    client = scope.get("client")
    fields: dict[str, Any] = {
        "who": caller or "anonymous",
        "origin": f"{client[0]}:{client[1]}" if client else "unknown",
        "method": scope["method"],
        "path": shown_path(scope),
        "outcome": _outcome(heard.status),
        "status": heard.status,
        "ms": milliseconds,
    }
    if heard.body_size:
        fields["body"] = shown_body(heard.body, heard.body_size)
    if heard.status >= 400:
        fields["reason"] = _reason(heard.answer)
    log.info(line("admin request", **fields))


def _outcome(status: int) -> str:
    """A redirect has changed nothing here: the broker that it names writes its own line."""
    if status == 0:
        return "broken off"
    return "done" if status < 300 else "redirected" if status < 400 else "refused" if status < 500 else "failed"


def shown_path(scope: Scope) -> str:
    """With the query, as it was sent; without the value of a setting that is a secret."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    if path.startswith(_CONFIGURATION):
        key, slash, _ = path.removeprefix(_CONFIGURATION).partition("/")
        if slash and is_secret(unquote(key)):
            path = f"{_CONFIGURATION}{key}/{MASK}"
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path


def shown_body(body: bytes, size: int) -> str:
    """JSON in one line with its secrets masked; for any other body, and for a long one, the number of bytes."""
    if size > BODY_BYTES_SHOWN_MAX:
        return f"{size} bytes"
    try:
        return json.dumps(_masked(json.loads(body)), separators=(",", ":"))
    except (ValueError, RecursionError):
        return f"{size} bytes"


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: MASK if is_secret(key) and member else _masked(member) for key, member in value.items()}
    return [_masked(member) for member in value] if isinstance(value, list) else value


def _reason(answer: bytes) -> str:
    try:
        found = json.loads(answer)
    except ValueError:
        return f"{len(answer)} bytes"
    reason = found.get("reason", "") if isinstance(found, dict) else ""
    return str(reason)[:REASON_CHARACTERS_MAX]
