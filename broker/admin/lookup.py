"""HTTP lookup (/lookup/v2/topic), as clients with an http:// service URL use it (TopicLookup)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..service.broker_service import BrokerService
from .answers import json_answer
from .elsewhere import redirect
from .names import topic_of


class LookupRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        return [Route("/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic:path}", self.lookup, methods=["GET"])]

    async def lookup(self, request: Request) -> Response:
        """`brokerUrlSsl` is always there: the C++ client takes the answer for malformed without it."""
        topic, parameters = topic_of(request), request.query_params
        authoritative = parameters.get("authoritative", "").lower() == "true"
        answer = await self._service.lookup(topic, parameters.get("listenerName", ""), authoritative=authoritative)
        found = answer.address
        if answer.is_redirect:
            return redirect(request, found.http_url, authoritative="true")
        body = {"brokerUrl": found.broker_url, "httpUrl": found.http_url, "nativeUrl": found.broker_url}
        if found.broker_url_tls:
            body |= {"brokerUrlTls": found.broker_url_tls, "httpUrlTls": found.http_url_tls}
        return json_answer(body | {"brokerUrlSsl": found.broker_url_tls})
