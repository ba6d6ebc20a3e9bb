"""Routes below /admin/v2/non-persistent (NonPersistentTopics). There are none yet: lists are empty, all else is 501."""

from starlette.requests import Request
from starlette.responses import Response

from ..security.needs import Kind
from ..service.broker_service import BrokerService
from .answers import Refusal, json_answer
from .endpoints import Access, Endpoint
from .names import namespace_of

_NAMESPACE = "/admin/v2/non-persistent/{tenant}/{namespace}"


class NonPersistentRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[Endpoint]:
        topics = Access(Kind.NAMESPACE, "GET_TOPICS")
        return [
            Endpoint("GET", _NAMESPACE, self.none, topics, answer=list[str]),
            Endpoint("GET", _NAMESPACE + "/partitioned", self.none, topics, answer=list[str]),
            *(
                Endpoint(method, _NAMESPACE + "/{rest:path}", self.missing, Access(Kind.NAMESPACE, "GET_TOPICS"))
                for method in ("GET", "PUT", "POST", "DELETE")
            ),
        ]

    async def none(self, request: Request) -> Response:
        """Tells that a namespace has no topics that are not persistent."""
        await self._service.namespaces.require(namespace_of(request))
        return json_answer([])

    async def missing(self, request: Request) -> Response:
        """Refuses whatever concerns a topic that is not persistent."""
        await self._service.namespaces.require(namespace_of(request))
        raise Refusal(501, "Non-persistent topics are not there yet")
