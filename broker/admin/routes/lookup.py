"""HTTP lookup (/lookup/v2/topic), as clients with an http:// service URL use it (TopicLookup)."""

from starlette.requests import Request
from starlette.responses import Response

from ...security.authorization.needs import Kind
from ...service.catalogue.catalogue import Catalogue
from ...service.errors import TooManyLookups
from ...service.lookup import Lookup
from ..rest.answers import Refusal, json_answer, text_answer
from ..rest.elsewhere import redirect
from ..rest.endpoints import Access, Endpoint, Query, Text
from ..rest.names import topic_of
from .namespaces.bundles import bundles_of


class LookupRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup) -> None:
        self._catalogue, self._lookup = catalogue, lookup

    def routes(self) -> list[Endpoint]:
        topic = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
        query = (Query("authoritative", bool, False), Query("listenerName", default=""))
        access = Access(Kind.TOPIC, "LOOKUP")
        return [
            Endpoint("GET", topic, self.lookup, access, query, answer=dict[str, str]),
            Endpoint("GET", topic + "/bundle", self.bundle, Access(Kind.NAMESPACE, "GET_BUNDLE"), answer=Text.LABELLED_JSON),
        ]

    async def bundle(self, request: Request) -> Response:
        """The range of the bundle that the topic is in, as bare text."""
        topic = topic_of(request)
        await self._catalogue.namespaces.require(topic.namespace)
        return text_answer((await bundles_of(self._lookup, topic.namespace)).of(topic).range)

    async def lookup(self, request: Request) -> Response:
        """Tells which broker serves a topic. `brokerUrlSsl` is always there: the C++ client takes the answer for malformed
        without it."""
        topic, query = topic_of(request), request.state.query
        listener = query["listenerName"] or request.headers.get("X-Pulsar-ListenerName", "")
        try:
            with self._lookup.pending():
                answer = await self._lookup.find(topic, listener, authoritative=query["authoritative"])
        except TooManyLookups as error:
            raise Refusal(503, str(error)) from error
        found = answer.address
        if answer.is_redirect:
            return redirect(request, found, authoritative="true")
        body = {"brokerUrl": found.broker_url, "httpUrl": found.http_url, "nativeUrl": found.broker_url}
        if found.broker_url_tls:
            body |= {"brokerUrlTls": found.broker_url_tls, "httpUrlTls": found.http_url_tls}
        return json_answer(body | {"brokerUrlSsl": found.broker_url_tls})
