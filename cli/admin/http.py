"""Requests to a server's admin REST: one connection, TLS, credentials, redirects to the owner followed with the body.

Never in here: what a request means. `http.client` and nothing heavier: the time to the first byte is what this tool is for.
"""

import contextlib
import json
import time
from collections.abc import Mapping
from http.client import BadStatusLine, HTTPConnection, HTTPException, HTTPSConnection, RemoteDisconnected
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from cli.admin.request import Request
from cli.client_configuration import ClientConfiguration, ConfigurationError, auth_data, auth_method, credentials

if TYPE_CHECKING:
    import ssl

REDIRECTS_MAX = 5
ANSWER_BYTES_MAX = 256 << 20


class Answer(NamedTuple):
    """Answer to a request that was done (2xx). `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Refused(Exception):
    """The server answered with an error; the text is its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Unreachable(Exception):
    """No answer: the address, and why."""


class AdminConnection:
    """Connection to the addresses of `webServiceUrl`, in their order; a redirect is followed on a connection of its own."""

    def __init__(self, configuration: ClientConfiguration, timeout_seconds: float) -> None:
        self._configuration = configuration
        self._timeout = timeout_seconds
        self._open: dict[str, HTTPConnection] = {}

    def ask(self, request: Request) -> Answer:
        """Refused, Unreachable, or ConfigurationError."""
        urls = self._configuration.web_service_urls()
        for number, base in enumerate(urls):
            try:
                return self._followed(base.rstrip("/") + request.path, request)
            except Unreachable:
                if number == len(urls) - 1:
                    raise
        raise ConfigurationError("webServiceUrl: no address")

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _followed(self, url: str, request: Request) -> Answer:
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._once(url, request)
            location = answer.headers.get("location")
            if answer.status not in (301, 302, 307, 308) or not location:
                return answer if answer.status < 300 else self._raise(answer, url)
            url = urljoin(url, location)
        raise Unreachable(f"{url}: more than {REDIRECTS_MAX} redirects")

    def _raise(self, answer: Answer, url: str) -> Answer:
        reason = _reason_in(answer)
        if answer.status == 401:
            from cli.connection_advice import credentials_refused

            shown = auth_data(self._configuration) or auth_method(self._configuration)
            reason = credentials_refused("://".join(urlsplit(url)[:2]), reason, shown, time.time())
        raise Refused(answer.status, reason)

    def _once(self, url: str, request: Request) -> Answer:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        headers = dict(credentials(self._configuration))
        headers["Accept"] = "application/json, */*;q=0.5"
        if request.body is not None:
            headers["Content-Type"] = request.media_type
        try:
            connection = self._open.get(origin) or self._connection(parts.scheme, parts.hostname or "", parts.port)
            self._open[origin] = connection
            connection.request(request.method, parts.path + (f"?{parts.query}" if parts.query else ""), request.body, headers)
            response = connection.getresponse()
            body = response.read(ANSWER_BYTES_MAX)
        except (OSError, HTTPException) as error:
            self._open.pop(origin, HTTPConnection("closed")).close()
            raise Unreachable(self._reason(origin, error)) from error
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def _reason(self, origin: str, error: OSError | HTTPException) -> str:
        """On which address, what happened, the likely cause, the remedy."""
        from cli.connection_advice import HTTP, closed_at_once, not_reached, speaks_otherwise

        if isinstance(error, RemoteDisconnected):
            return closed_at_once(origin, HTTP)
        if isinstance(error, BadStatusLine):
            return speaks_otherwise(origin, str(error).encode("latin-1", errors="replace"), HTTP, "its answer is no HTTP")
        if isinstance(error, OSError):
            return not_reached(origin, error, HTTP, self._timeout)
        return f"{origin}: {error or type(error).__name__}"

    def _connection(self, scheme: str, host: str, port: int | None) -> HTTPConnection:
        if scheme == "http":
            return HTTPConnection(host, port or 80, timeout=self._timeout)
        if scheme != "https":
            raise ConfigurationError(f"webServiceUrl: {scheme}://{host} is neither http:// nor https://")
        return HTTPSConnection(host, port or 443, timeout=self._timeout, context=self._tls())

    def _tls(self) -> "ssl.SSLContext":
        from cli.client_configuration import tls_context

        return tls_context(self._configuration)


def _reason_in(answer: Answer) -> str:
    """The server's own, or what came where there is none."""
    text = answer.body.decode(errors="replace")
    reason = ""
    with contextlib.suppress(ValueError, AttributeError):  # an answer of something that is no Pulsar
        reason = str(json.loads(text).get("reason") or "")
    return reason or f"HTTP {answer.status} {text.strip()}".strip()
