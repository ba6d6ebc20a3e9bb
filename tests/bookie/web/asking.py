"""Requests to a bookie's HTTP without a socket."""

from typing import Any

from starlette.applications import Starlette

Answer = tuple[int, str]


async def ask(app: Starlette, path: str, body: bytes | None = None, query: str = "", method: str = "") -> Answer:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    how = method or ("GET" if body is None else "PUT")
    scope = {"type": "http", "method": how, "path": path, "headers": [], "query_string": query.encode(), "http_version": "1.1"}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]).decode()
