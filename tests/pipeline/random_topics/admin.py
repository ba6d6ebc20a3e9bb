"""The admin REST, redirects followed: a broker that begins to own a namespace redirects the client to itself."""

import http.client
import json
import urllib.request
from typing import Any

from tests.clients.server_process import Ready

_REDIRECTS_MAX = 5


class _Redirected(urllib.request.HTTPRedirectHandler):
    """With the same method and body, as a 307 wants it."""

    max_redirections = _REDIRECTS_MAX

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> urllib.request.Request:
        return urllib.request.Request(newurl, req.data, dict(req.header_items()), method=req.get_method())


_opener = urllib.request.build_opener(_Redirected)


def ask(server: Ready, path: str, body: object = None, method: str = "GET") -> Any:
    """The answer, or None where there is none."""
    data = None if method == "GET" else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.web_url}/admin/v2/{path}", data, headers, method=method)
    with _opener.open(request, timeout=60) as answer:
        text = answer.read()
        return json.loads(text) if text else None
