"""Routes for how a namespace is cut into bundles (Apache: Namespaces.getBundlesData, splitNamespaceBundle)."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.load.bundle_splits import BundleSplits, UnsupportedAlgorithm
from ....service.load.splitting import SPECIFIED, CannotSplit
from ....service.lookup import Lookup
from ....service.ownership.bundles import HASH_MAX, Bundles
from ....service.topic_name import NamespaceName
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.bodies import BundlesData, Long
from ...rest.elsewhere import redirect
from ...rest.endpoints import SUPER_USER, Access, Endpoint, Query
from ...rest.names import namespace_of

_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


class BundleRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, splits: BundleSplits) -> None:
        self._catalogue, self._lookup, self._splits = catalogue, lookup, splits

    def routes(self) -> list[Endpoint]:
        split = (
            Query("unload", bool, False, "The parts are given up, so that others may take them."),
            Query("splitAlgorithmName"),
        )
        get = Access(Kind.NAMESPACE, "GET_BUNDLE")
        return [
            Endpoint("GET", _NAMESPACE + "/bundles", self.get, get, answer=BundlesData),
            Endpoint(
                "PUT", _NAMESPACE + "/{bundle}/split", self.split, SUPER_USER, split, list[Long] | None, body_optional=True
            ),
        ]

    async def get(self, request: Request) -> Response:
        """BundlesData."""
        namespace = namespace_of(request)
        await self._catalogue.namespaces.require(namespace)
        return json_answer(bundles_data(await bundles_of(self._lookup, namespace)))

    async def split(self, request: Request) -> Response:
        """`unload`, `splitAlgorithmName`; the body has the positions of specified_positions_divide."""
        namespace, text = namespace_of(request), request.path_params["bundle"]
        await self._catalogue.namespaces.require(namespace)
        query = request.state.query
        algorithm, unload = query["splitAlgorithmName"], query["unload"]
        positions = (request.state.body or []) if algorithm == SPECIFIED else []
        try:
            elsewhere = await self._splits.split(namespace, text, algorithm, positions, unload=unload)
        except (UnsupportedAlgorithm, CannotSplit) as error:
            raise Refusal(412, str(error)) from error
        return no_content() if elsewhere is None else redirect(request, elsewhere.address)


async def bundles_of(lookup: Lookup, namespace: NamespaceName) -> Bundles:
    """Returns the bundles of a namespace; one where ownership is not by bundles."""
    return await lookup.owners.cut(namespace) or Bundles(namespace, (0, HASH_MAX))


def bundles_data(cut: Bundles) -> dict[str, Any]:
    """BundlesData."""
    edges = [f"0x{edge:08x}" for edge in cut.boundaries]
    return {"boundaries": edges, "numBundles": len(edges) - 1}
