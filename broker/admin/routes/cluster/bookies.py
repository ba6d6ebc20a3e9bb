"""Routes for bookies and where they stand (Apache: Bookies). The places are at /bookies, which placement of ledgers follows.

One is our own: `local-reads`, by which readers on the machine get at the files of a bookie that is inside this process. A file
has entries of all topics, so it is for super-users (docs/adr/0030-reads-on-one-machine.md).
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metadata.store import MetadataStore

from ....service.bookies_inside import BookieInside
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.bodies import BookieInfo, plain
from ...rest.documents import Documents
from ...rest.endpoints import SUPER_USER, Endpoint, Query

PLACES = "/bookies"
_KNOWN = ("/ledgers/cookies", "/ledgers/available", "/ledgers/available/readonly")
_INFO = "/admin/v2/bookies/racks-info"


class BookieRoutes:
    """The handlers; one instance per server."""

    def __init__(self, bookies_inside: Mapping[str, BookieInside], store: MetadataStore) -> None:
        self._bookies_inside, self._store, self._documents = bookies_inside, store, Documents(store)

    def routes(self) -> list[Endpoint]:
        one, group = _INFO + "/{bookie}", (Query("group", description="The group in which the bookie is to be."),)
        groups = dict[str, dict[str, BookieInfo]]
        return [
            Endpoint("GET", "/admin/v2/bookies/all", self.all, SUPER_USER, answer=dict[str, list[dict[str, str]]]),
            Endpoint("GET", "/admin/v2/bookies/local-reads", self.local_reads, SUPER_USER, answer=dict[str, dict[str, str]]),
            Endpoint("GET", _INFO, self.places, SUPER_USER, answer=groups),
            Endpoint("GET", one, self.place, SUPER_USER, answer=BookieInfo),
            Endpoint("POST", one, self.set_place, SUPER_USER, group, BookieInfo),
            Endpoint("DELETE", one, self.remove_place, SUPER_USER),
        ]

    async def all(self, request: Request) -> Response:
        """BookiesClusterInfo: every bookie that has ever been part of the cluster, and is not decommissioned."""
        found: dict[str, None] = {}
        for path in _KNOWN:
            found.update(dict.fromkeys(name for name in await self._store.children(path) if name != "readonly"))
        return json_answer({"bookies": [{"bookieId": name} for name in sorted(found)]})

    async def local_reads(self, request: Request) -> Response:
        """Tells the abstract socket and the token (hexadecimal) of each bookie in this process that hands over its files."""
        inside = self._bookies_inside
        told = {name: {"socket": each.socket_name.decode(), "token": each.token.hex()} for name, each in inside.items()}
        answer = json_answer(told)
        answer.headers["Cache-Control"] = "no-store"  # a secret of this process
        return answer

    async def places(self, request: Request) -> Response:
        """Tells the places of bookies by group and bookie."""
        return json_answer(await self._documents.get(PLACES) or {})

    async def place(self, request: Request) -> Response:
        """Tells the place of one bookie."""
        bookie = request.path_params["bookie"]
        for members in (await self._documents.get(PLACES) or {}).values():
            if bookie in members:
                return json_answer(members[bookie])
        raise _missing(bookie)

    async def set_place(self, request: Request) -> Response:
        """Places a bookie in this group and in no other. A bookie without a rack would be nowhere: refused, which Apache does
        not."""
        bookie, group = request.path_params["bookie"], request.state.query["group"]
        info: BookieInfo = request.state.body
        if not group:
            raise Refusal(412, "Bookie 'group' parameters is missing")
        if not (info.rack or "").strip("/ "):
            raise Refusal(412, "rack: expected where the bookie is, as /rack or /region/rack")

        def edit(groups: Any) -> Any:
            return _without(groups or {}, bookie) | {
                group: {**_without(groups or {}, bookie).get(group, {}), bookie: plain(info)}
            }

        await self._documents.change(PLACES, edit)
        return no_content()

    async def remove_place(self, request: Request) -> Response:
        """The bookie is at the default place again."""
        bookie = request.path_params["bookie"]

        def edit(groups: Any) -> Any:
            if not any(bookie in members for members in (groups or {}).values()):
                raise _missing(bookie)
            return _without(groups, bookie)

        await self._documents.change(PLACES, edit)
        return no_content()


def _without(groups: dict[str, dict[str, Any]], bookie: str) -> dict[str, dict[str, Any]]:
    """Groups without any bookie are none."""
    left = {name: {each: info for each, info in members.items() if each != bookie} for name, members in groups.items()}
    return {name: members for name, members in left.items() if members}


def _missing(bookie: str) -> Refusal:
    return Refusal(404, f"Bookie rack placement configuration not found: {bookie}")
