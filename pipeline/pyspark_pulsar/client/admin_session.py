"""Questions to the admin REST over connections that are kept: one to each broker that was asked. Used by one thread."""

import http.client
import json
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

from ..errors import NoSuchTopic, NoTransactions, Refused
from ..options import Access
from .connection import Lost
from .credentials import tls_context, token

_REDIRECTS_MAX = 20
_REDIRECTIONS = {301, 302, 303, 307, 308}
_SAID_CHARACTERS_MAX = 2000
_NO_TRANSACTIONS = "not configured with transactionCoordinatorEnabled"
"""Text in a 503 answer (TransactionsBase) that will not change soon."""


class AdminSession:
    """Requests to the admin REST; `with` closes it. A connection that fails is Lost, and the next request makes another one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def get(self, topic: str, path: str) -> Mapping[str, Any]:
        """An object. NoSuchTopic for 404, Refused, Lost; `topic` is what they name."""
        return self._body(topic, *self._asked("GET", path))

    def delete(self, topic: str, path: str) -> None:
        """Sends a DELETE; errors are those of `get`."""
        status, said = self._asked("DELETE", path)
        if status != http.client.NO_CONTENT:
            self._body(topic, status, said)

    def _asked(self, method: str, path: str) -> tuple[int, bytes]:
        url = self._access.admin_url + path
        for _ in range(_REDIRECTS_MAX):
            answer, said = self._answer(method, url)
            if answer.status not in _REDIRECTIONS:
                return answer.status, said
            url = urljoin(url, answer.headers.get("Location", ""))  # the broker that has the topic
        raise Lost(f"{self._access.admin_url}: more than {_REDIRECTS_MAX} redirects")

    def _answer(self, method: str, url: str) -> tuple[http.client.HTTPResponse, bytes]:
        parts = urlsplit(url)
        place = parts.scheme, parts.netloc
        secret = token(self._access)
        try:
            connection = self._connections.get(place) or self._connected(*place)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request(method, target, headers={"Authorization": f"Bearer {secret}"} if secret else {})
            answer = connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException) as error:
            if place in self._connections:
                self._connections.pop(place).close()
            said = f"{parts.scheme}://{parts.netloc}: {error}"
            if isinstance(error, http.client.BadStatusLine):
                said += "; option admin.url wants the port of HTTP, 8080 where nobody said another one"
            raise (Refused if isinstance(error, ssl.SSLCertVerificationError) else Lost)(said) from None

    def _connected(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        seconds = self._access.timeout_seconds
        self._connections[scheme, netloc] = (
            http.client.HTTPSConnection(netloc, timeout=seconds, context=tls_context(self._access))
            if scheme == "https"
            else http.client.HTTPConnection(netloc, timeout=seconds)
        )
        return self._connections[scheme, netloc]

    def _body(self, topic: str, status: int, said: bytes) -> Mapping[str, Any]:
        where = self._access.admin_url
        text = said[:_SAID_CHARACTERS_MAX].decode(errors="replace").strip()
        if status == http.client.OK:
            try:
                body: Mapping[str, Any] = json.loads(said)
            except ValueError as error:
                raise Lost(f"{where}: {error}") from None
            return body
        if status == http.client.NOT_FOUND:
            raise NoSuchTopic(f"{topic}: there is no such topic at {where}: {text}")
        if status >= http.client.INTERNAL_SERVER_ERROR and _NO_TRANSACTIONS in text:
            raise NoTransactions(f"{topic}: {where} answers {status}: {text}")
        if status >= http.client.INTERNAL_SERVER_ERROR:
            raise Lost(f"{where}: {status}: {text}")
        raise Refused(f"{topic}: {where} answers {status}: {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in self._connections.values():
            each.close()
        self._connections.clear()
