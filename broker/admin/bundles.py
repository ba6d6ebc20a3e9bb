"""Routes for how a namespace is cut into bundles (Apache: Namespaces.getBundlesData, splitNamespaceBundle)."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..service.broker_service import BrokerService
from ..service.load.bundle_splits import UnsupportedAlgorithm
from ..service.load.splitting import SPECIFIED, CannotSplit
from ..service.topic_name import NamespaceName
from .answers import BadRequest, Refusal, json_answer, no_content, read_json
from .elsewhere import redirect
from .names import namespace_of

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


class BundleRoutes:
    """The handlers; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", _NAMESPACE + "/bundles", self.get),
            ("PUT", _NAMESPACE + "/{bundle}/split", self.split),
        ]
        return [Route(path, handler, methods=[method]) for method, path, handler in table]

    async def get(self, request: Request) -> Response:
        """BundlesData."""
        namespace = namespace_of(request)
        await self._service.namespaces.require(namespace)
        cut = await self._service.owners.cut(namespace)
        if cut is None:
            return json_answer(await self._configured(namespace))
        edges = [f"0x{edge:08x}" for edge in cut.boundaries]
        return json_answer({"boundaries": edges, "numBundles": len(edges) - 1})

    async def _configured(self, namespace: NamespaceName) -> Any:
        """Of a standalone, which serves them all and leaves them as they were made."""
        return (await self._service.namespace_policies.document(namespace)).get("bundles")

    async def split(self, request: Request) -> Response:
        """`unload`, `splitAlgorithmName`; the body has the positions of specified_positions_divide."""
        namespace, text = namespace_of(request), request.path_params["bundle"]
        await self._service.namespaces.require(namespace)
        algorithm = request.query_params.get("splitAlgorithmName") or None
        positions = await _positions(request) if algorithm == SPECIFIED else []
        unload = request.query_params.get("unload", "false").lower() == "true"
        try:
            elsewhere = await self._service.splits.split(namespace, text, algorithm, positions, unload=unload)
        except UnsupportedAlgorithm as error:
            raise Refusal(406, str(error)) from error
        except CannotSplit as error:
            raise Refusal(412, str(error)) from error
        return no_content() if elsewhere is None else redirect(request, elsewhere.address.http_url)


async def _positions(request: Request) -> list[int]:
    found = await read_json(request)
    if not isinstance(found, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in found):
        raise BadRequest("expected a list of positions in the hash space")
    return found
