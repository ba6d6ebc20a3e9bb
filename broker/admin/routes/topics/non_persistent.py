"""Routes below /admin/v2/non-persistent (NonPersistentTopics): those of other topics, except for stored data. Requests that
need storage are refused, with the reason. A list has the loaded topics, as in Apache: no other record of them exists.
"""

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from ....security.authorization.needs import Kind
from ....service.addresses import BROKERS, Advertised, broker_id
from ....service.catalogue.catalogue import Catalogue
from ....service.lookup import Lookup
from ....service.topic_name import NamespaceName
from ...rest.answers import Refusal, json_answer
from ...rest.elsewhere import ask_json
from ...rest.endpoints import Access, Endpoint, Query
from ...rest.names import full_names, names_in, namespace_of, topic_of

_PERSISTENT = "/admin/v2/persistent/"
_NAMESPACE = "/admin/v2/non-persistent/{tenant}/{namespace}"
_HERE = "authoritative"
_SERVED = (
    "",
    "/partitions",
    "/stats",
    "/partitioned-stats",
    "/internalStats",
    "/partitioned-internalStats",
    "/properties",
    "/unload",
    "/subscriptions",
    "/createMissedPartitions",
    "/permissions",
    "/permissions/{role}",
)
"""After the topic; of `/subscription/{subscription}` only DELETE."""
_POLICIES_IN_FORCE = (
    "publishRate",
    "maxProducers",
    "maxConsumers",
    "maxConsumersPerSubscription",
    "maxSubscriptionsPerTopic",
    "maxMessageSize",
    "subscriptionTypesEnabled",
    "inactiveTopicPolicies",
    "schemaCompatibilityStrategy",
    "schemaValidationEnforced",
)
"""Policies that may be set: they do not concern storage. Apache stores the others without any effect."""
_REFUSED = {
    "/lastMessageId": (405, "GetLastMessageId on a non-persistent topic is not allowed"),
    "/terminate": (406, "Need to provide a persistent topic name"),
    "/terminate/partitions": (406, "Need to provide a persistent topic name"),
    "/subscription/{subscription}": (400, "Create subscription on non-persistent topic can only be done through client"),
}
_REFUSED_OTHERWISE = (405, "A non-persistent topic stores nothing: {} is not there for it")


class NonPersistentRoutes:
    """The handlers; one instance per server. `of_others`: the endpoints of persistent topics."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, of_others: Iterable[Endpoint]) -> None:
        self._catalogue, self._lookup = catalogue, lookup
        self._of_others = [each for each in of_others if each.path.startswith(_PERSISTENT)]

    def routes(self) -> list[Endpoint]:
        topics, here = Access(Kind.NAMESPACE, "GET_TOPICS"), (Query(_HERE, bool, False),)
        return [
            Endpoint("GET", _NAMESPACE, self.list_all, topics, (*here, Query("bundle")), answer=list[str]),
            Endpoint("GET", _NAMESPACE + "/partitioned", self.list_partitioned, topics, answer=list[str]),
            Endpoint("GET", _NAMESPACE + "/{bundle}", self.list_bundle, topics, answer=list[str]),
            *(self._mirrored(each) for each in self._of_others if "{topic}" in each.path),
        ]

    def _mirrored(self, endpoint: Endpoint) -> Endpoint:
        path = endpoint.path.replace(_PERSISTENT, "/admin/v2/non-persistent/", 1)
        tail = endpoint.path.partition("{topic}")[2]
        is_subscription = tail == "/subscription/{subscription}" and endpoint.method == "DELETE"
        is_policy = endpoint.access.kind is Kind.TOPIC_POLICY and (
            endpoint.method in ("GET", "DELETE") or tail.strip("/") in _POLICIES_IN_FORCE
        )
        if tail in _SERVED or is_subscription or is_policy:
            return replace(endpoint, path=path)
        status, message = _REFUSED.get(tail, _REFUSED_OTHERWISE)

        async def refuse(request: Request) -> Response:
            """Refuses a route that makes no sense for topics without storage."""
            await self._catalogue.namespaces.require(topic_of(request).namespace)
            raise Refusal(status, message.format(tail.strip("/")))

        return replace(endpoint, path=path, handler=refuse, body=None)

    async def list_all(self, request: Request) -> Response:
        """Lists the topics of a namespace that any broker has loaded, or those of one bundle of it."""
        namespace = namespace_of(request)
        found = await self._here(namespace, request.state.query["bundle"])
        if not request.state.query[_HERE]:
            found += await self._elsewhere(namespace, request.state.query["bundle"])
        return json_answer(found)

    async def list_bundle(self, request: Request) -> Response:
        """Tells the topics of one bundle that are loaded."""
        namespace, bundle = namespace_of(request), request.path_params["bundle"]
        return json_answer([*await self._here(namespace, bundle), *await self._elsewhere(namespace, bundle)])

    async def _here(self, namespace: NamespaceName, bundle: str | None) -> list[str]:
        return await names_in(namespace, bundle, await self._catalogue.list_non_persistent(namespace))

    async def _elsewhere(self, namespace: NamespaceName, bundle: str | None) -> list[str]:
        own, found = broker_id(self._lookup.advertised), list[str]()
        path = f"/admin/v2/non-persistent/{namespace}?{_HERE}=true" + (f"&bundle={bundle}" if bundle else "")
        for broker in await self._catalogue.store.children(BROKERS):
            if broker != own:
                found += await ask_json(self._lookup.neighbours, Advertised("", f"http://{broker}"), path) or []
        return found

    async def list_partitioned(self, request: Request) -> Response:
        """Tells the partitioned topics of a namespace."""
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        found = await self._catalogue.partitioned_topics.list_in(namespace, "non-persistent")
        return json_answer(await full_names(found))
