"""Journal files: their names, preparing the next one ahead, recycling those that are no longer needed.

A file that is passed by the checkpoint mark is renamed to the next id and overwritten: its blocks are allocated, so a write
into it changes no metadata and its fsync is one write. At most journalMaxBackups of them are kept, the rest are removed.
On a disk without room for journalPreAllocSizeMB a small file is prepared, at last one that was kept back for it and has its
room: fences and recoveries go on where nothing is published any more.
"""

import asyncio
import logging

from bookie.journal.format_v1 import NO_FRAME_YET, FileHeader, encode_file_header, file_key
from bookie.settings import MEGABYTE, BookieSettings
from ports.disk.disk import DIRECT_ALIGNMENT, Disk, File
from ports.disk.kept_room import NO_ROOM, TIMES_FREE_MIN, KeptRoom
from ports.logs import line

SMALL_BYTES = 256 * 1024
"""Size of a journal file on a full disk."""
KEPT, KEPT_FILES_MAX = "kept-room", 4
"""Files that are kept back: each is good for a start, or a failed write, while nothing is free."""
RETRY_SECONDS = 1.0
"""Between two preparations in advance, after one that failed."""
LANE = "journal"
PREPARATION_LANE = "journal-preparation"
SUFFIX = ".journal"
log = logging.getLogger("bookie.journal")


def file_name(file_id: int) -> str:
    return f"{file_id:016x}{SUFFIX}"


async def journal_ids(disk: Disk, directory: str) -> list[int]:
    """Ids of the files there, ascending."""
    names = [name.removesuffix(SUFFIX) for name in await disk.list_directory(directory) if name.endswith(SUFFIX)]
    return sorted(int(name, 16) for name in names)


class JournalFiles:
    """Gives the journal its next file. One preparation runs at a time."""

    def __init__(self, disk: Disk, directory: str, secret: bytes, settings: BookieSettings) -> None:
        self._disk = disk
        self.kept = KeptRoom(disk, directory, KEPT, piece_bytes_min=SMALL_BYTES, pieces_max=KEPT_FILES_MAX)
        self._directory = directory
        self._secret = secret
        self._alignment = settings.journal_alignment_size
        self._is_queued = settings.journal_io_uring and self._alignment % DIRECT_ALIGNMENT == 0
        self._step_bytes = settings.journal_pre_alloc_size_mb * MEGABYTE
        self._spares_max = settings.journal_max_backups
        self._live: list[int] = []
        self._spare: list[int] = []
        self._next_id = 1
        self._preparation: asyncio.Task[tuple[int, File]] | None = None
        self._loop = asyncio.get_running_loop()
        self._has_failed = False
        self._prepares_at = self._loop.time()

    def path(self, file_id: int) -> str:
        return f"{self._directory}/{file_name(file_id)}"

    def adopt(self, live: list[int], spare: list[int], next_id: int) -> None:
        """Take over what replay found: files with frames, files without."""
        self._live, self._spare, self._next_id = list(live), list(spare), next_id

    @property
    def oldest_id(self) -> int:
        """Oldest id of the files that are needed; 0: there is none."""
        return min(self._live, default=0)

    def prepare_next(self) -> None:
        """Begin to prepare the next file, unless that is under way or done. A failure is tried again, after a while."""
        if self._preparation is not None and self._preparation.done() and self._preparation.exception() is not None:
            self._failed(self._preparation.exception())
            self._preparation = None
        if self._preparation is None and self._loop.time() >= self._prepares_at:
            self._preparation = self._begin()

    def _begin(self) -> "asyncio.Task[tuple[int, File]]":
        return self._loop.create_task(self._prepare(), name="journal-preparation")

    def _failed(self, error: BaseException | None) -> None:
        """Log the failure once, until a preparation succeeds."""
        self._prepares_at = self._loop.time() + RETRY_SECONDS
        if not self._has_failed:
            remedy = f"make room on the disk of {self._directory}"
            log.warning(line("journal file not prepared", directory=self._directory, error=error, remedy=remedy))
        self._has_failed = True

    async def take_next(self) -> tuple[int, File]:
        """The next file, with some of its space reserved; its name and a header that says it is unused are durable. OSError."""
        self.prepare_next()
        preparation = self._preparation or self._begin()
        self._preparation = preparation
        try:
            file_id, file = await preparation
        except OSError as error:
            self._failed(error)
            raise
        finally:
            self._preparation = None
        if self._has_failed:
            self._has_failed = False
            log.warning(line("journal files are prepared again", directory=self._directory))
        self._live.append(file_id)
        return file_id, file

    async def release(self, first_needed_id: int) -> None:
        """Files before this one hold nothing that is needed: keep some as spares, remove the rest."""
        self._spare.extend(file_id for file_id in self._live if file_id < first_needed_id)
        self._live = [file_id for file_id in self._live if file_id >= first_needed_id]
        while len(self._spare) > self._spares_max:
            await self._disk.remove(self.path(self._spare.pop()))

    async def close(self) -> None:
        preparation, self._preparation = self._preparation, None
        if preparation is None:
            return
        try:
            _, file = await preparation
        except OSError as error:
            log.warning(line("journal file not prepared", directory=self._directory, error=error))
        else:
            await file.close()

    async def _prepare(self) -> tuple[int, File]:
        file_id = self._next_id
        self._next_id += 1
        path = self.path(file_id)
        if self._spare:
            await self._disk.rename(self.path(self._spare.pop(0)), path)
        file = await self._disk.open(path, create=True, lane=PREPARATION_LANE)
        try:
            await self._fill(file, file_id)
        except OSError as error:
            await self._abandon(file)
            if error.errno not in NO_ROOM or not await self.kept.take(path):
                raise
            file = await self._disk.open(path, lane=PREPARATION_LANE)
            await self._write_header(file, file_id)
        await file.close()
        await self._disk.sync_directory(self._directory)
        return file_id, await self._disk.open(path, lane=LANE, queued=self._is_queued)

    async def _fill(self, file: File, file_id: int) -> None:
        if file.size() < self._step_bytes:
            await self.reserve(file, self._step_bytes, SMALL_BYTES)
        await self._write_header(file, file_id)

    async def _write_header(self, file: File, file_id: int) -> None:
        header = FileHeader(self._alignment, file_id, NO_FRAME_YET)
        await file.write(0, [encode_file_header(header, file_key(self._secret, file_id))], sync=True)

    async def reserve(self, file: File, size_bytes: int, size_bytes_min: int) -> int:
        """Reserve room for the file; the bytes reserved: `size_bytes`, on a full disk `size_bytes_min` at least. OSError."""
        usage = await self._disk.usage(self._directory)
        if usage.free_bytes < TIMES_FREE_MIN * size_bytes:
            size_bytes = max(size_bytes_min, file.size())  # what is left is left to others, such as metadata
        try:
            await file.allocate(size_bytes)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            if file.size() < size_bytes_min:
                await file.allocate(size_bytes_min)
            return max(file.size(), size_bytes_min)
        return size_bytes

    async def _abandon(self, file: File) -> None:
        """A file that could not be prepared is of no use, and takes what room there is."""
        try:
            await file.close()
            await self._disk.remove(file.path)
        except OSError as error:
            log.warning(line("journal file not removed", path=file.path, error=error))
