"""Routes for the assumed needs of a bundle that has not been measured yet (Apache: ResourceQuotasBase, BundlesQuotas).

Kept where Apache's load manager looks for it. Ours places bundles by measurements; quotas are for Apache's brokers
beside it.
"""

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....service.catalogue.catalogue import Catalogue
from ....service.lookup import Lookup
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.bodies import ResourceQuota, plain
from ...rest.documents import Documents
from ...rest.endpoints import SUPER_USER, Endpoint
from ...rest.names import namespace_of
from ..namespaces.bundles import bundles_of

ROOT = "/loadbalance/resource-quota"
_DEFAULT = f"{ROOT}/default"
_QUOTAS = "/admin/v2/resource-quotas"
_INITIAL = ResourceQuota(40.0, 120.0, 100_000.0, 300_000.0, 80.0)


class ResourceQuotaRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, store: MetadataStore) -> None:
        self._catalogue, self._lookup, self._documents = catalogue, lookup, Documents(store)

    def routes(self) -> list[Endpoint]:
        one = _QUOTAS + "/{tenant}/{namespace}/{bundle}"
        get = change = SUPER_USER
        return [
            Endpoint("GET", _QUOTAS, self.default, SUPER_USER, answer=ResourceQuota),
            Endpoint("POST", _QUOTAS, self.set_default, SUPER_USER, body=ResourceQuota),
            Endpoint("GET", one, self.get, get, answer=ResourceQuota),
            Endpoint("POST", one, self.set, change, body=ResourceQuota),
            Endpoint("DELETE", one, self.remove, change),
        ]

    async def default(self, request: Request) -> Response:
        """Tells the quota of bundles without their own."""
        return json_answer(await self._default())

    async def set_default(self, request: Request) -> Response:
        """Sets the quota of bundles without their own."""
        await self._documents.change(_DEFAULT, lambda before: plain(request.state.body))
        return no_content()

    async def get(self, request: Request) -> Response:
        """Tells the quota of one bundle."""
        return json_answer(await self._documents.get(await self._path(request)) or await self._default())

    async def set(self, request: Request) -> Response:
        """Sets the quota of one bundle."""
        await self._documents.change(await self._path(request), lambda before: plain(request.state.body))
        return no_content()

    async def remove(self, request: Request) -> Response:
        """The default holds again."""
        await self._documents.delete(await self._path(request))
        return no_content()

    async def _default(self) -> object:
        return await self._documents.get(_DEFAULT) or plain(_INITIAL)

    async def _path(self, request: Request) -> str:
        """Returns the path of an existing bundle. Refusal(412)."""
        namespace, text = namespace_of(request), request.path_params["bundle"]
        await self._catalogue.namespaces.require(namespace)
        if (await bundles_of(self._lookup, namespace)).named(text) is None:
            raise Refusal(412, f"Invalid bundle range: {text[:100]} is no bundle of namespace {namespace}")
        return f"{ROOT}/{namespace}/{text}"
