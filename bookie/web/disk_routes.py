"""The paths of a bookie's HTTP about the files on its disks: where the mark is, which files there are. Reads alone."""

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bookie.journal.files import file_name
from bookie.settings import BookieSettings
from bookie.stored_files import SUFFIXES, last_marks, stored_files
from bookie.web.requests import BadRequest, body_of
from ports.disk.disk import Disk

_NO_EXPANSION = (
    "a ledger is in one journal and one ledger directory for ever: journalDirectories and ledgerDirectories keep their number. "
    "A bookie with more disks is another bookie"
)
_NO_ROCKSDB = "Not trigger Entry Location RocksDB compact: there is no RocksDB, entries are found by an index beside each log."


class DiskRoutes:
    """Routes about one bookie's directories."""

    def __init__(self, disk: Disk, settings: BookieSettings) -> None:
        self._disk, self._settings = disk, settings

    def routes(self) -> list[Route]:
        api = "/api/v1/bookie"
        return [
            Route(f"{api}/last_log_mark", self._last_log_mark),
            Route(f"{api}/list_disk_file", self._list_disk_file),
            Route(f"{api}/expand_storage", self._expand_storage, methods=["PUT"]),
            Route(f"{api}/entry_location_compact", self._entry_location_compact, methods=["GET", "PUT"]),
        ]

    async def _last_log_mark(self, request: Request) -> Response:
        marks = await last_marks(self._disk, self._settings)
        several = len(marks) > 1
        return JSONResponse(
            {
                f"LastLogMark: Journal Id - {mark.file_id}({directory + '/' if several else ''}{file_name(mark.file_id)})": (
                    f"Pos - {mark.offset}"
                )
                for directory, mark in marks
            }
        )

    async def _list_disk_file(self, request: Request) -> Response:
        wanted = request.query_params.get("file_type")
        if wanted is not None and wanted not in SUFFIXES:
            raise BadRequest(f"file_type={wanted}: expected one of {', '.join(SUFFIXES)}")
        found = {}
        for kind in SUFFIXES if wanted is None else (wanted,):
            paths = await stored_files(self._disk, self._settings, kind)
            found[f"{kind} files"] = "".join(f"{path.rpartition('/')[2]}\t" for path in paths)
        return JSONResponse(found)

    async def _expand_storage(self, request: Request) -> Response:
        return PlainTextResponse(_NO_EXPANSION, status_code=501)

    async def _entry_location_compact(self, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse({})
        await body_of(request)
        return JSONResponse(_NO_ROCKSDB)


async def on_disk_error(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"the disks cannot be asked: {error}", status_code=500)


async def on_damage(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=500)
