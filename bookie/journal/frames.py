"""Frames: puts frames into the journal's files, one after the other. Owns the file that is written, and the place in it.

Nearly always there is room in the file: then a frame is on its way to the disk when `write` returns, without a task. Otherwise
space is reserved or the next file begun before. One write at a time; after one that failed nothing is written to that file
again (an fsync that failed once may claim success later): `abandon` it. A frame for which there is no room is not begun
(`NoRoomForFrame`), and the file is good for smaller ones.
"""

import asyncio
import logging
from collections.abc import Sequence

from bookie.journal import format_v1 as form
from bookie.journal.files import JournalFiles
from bookie.journal.format_v1 import Record
from bookie.settings import MEGABYTE, BookieSettings
from ports.disk.disk import Buffer, File
from ports.disk.kept_room import NO_ROOM
from ports.logs import line
from wire.run import EntryMix, EntryRun

log = logging.getLogger("bookie.journal")


class NoRoomForFrame(OSError):
    """The disk is full: nothing of the frame was written."""


class Frames:
    """Frames of one journal. `file_id`, `end` and `size_bytes`: where the last frame that was begun ends, and its size."""

    def __init__(self, files: JournalFiles, secret: bytes, settings: BookieSettings) -> None:
        self._files = files
        self._secret = secret
        self._alignment = settings.journal_alignment_size
        self._file_bytes_max = settings.journal_max_size_mb * MEGABYTE
        self._step_bytes = settings.journal_pre_alloc_size_mb * MEGABYTE
        self._loop = asyncio.get_running_loop()
        self._file: File | None = None
        self._key = 0
        self._allocated = 0
        self.file_id = 0
        self.end = 0
        self.size_bytes = 0

    @property
    def left_bytes(self) -> int:
        """Number of bytes of the file that are reserved and not written yet."""
        return 0 if self._file is None else self._allocated - self.end

    async def open_next(self) -> None:
        """Go on in the next file. OSError: this one is still the file."""
        file_id, file = await self._files.take_next()
        await self.close()
        self.file_id, self._file = file_id, file
        self._key = form.file_key(self._secret, self.file_id)
        self.end = 0
        self._allocated = file.size()

    def write(self, records: Sequence[Record], sequence: int) -> "asyncio.Future[None]":
        """Write a frame; the future is done when the frame is on disk. OSError, NoRoomForFrame."""
        buffers, size = form.encode_frame(records, self._key, sequence, self._alignment)
        end = self.end + size
        if self._file is not None and self.end and end <= self._allocated and end <= self._file_bytes_max:
            return self._begin(self._file, buffers, size, end)
        return self._loop.create_task(self._write_with_room(records, sequence), name="journal frame")

    async def _write_with_room(self, records: Sequence[Record], sequence: int) -> None:
        try:
            await self._make_room(records, sequence)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise NoRoomForFrame(error.errno, "No space left on device for a frame of the journal") from error
            raise
        file = self._file
        assert file is not None, "there is one where there is room"
        buffers, size = form.encode_frame(records, self._key, sequence, self._alignment)
        end = self.end + size
        if self.end == 0:
            end += self._alignment
            header = form.FileHeader(self._alignment, self.file_id, sequence)
            buffers = [form.encode_file_header(header, self._key), *buffers]
        await self._begin(file, buffers, size, end)

    async def _make_room(self, records: Sequence[Record], sequence: int) -> None:
        """There is a file, and so much of it is reserved. OSError."""
        _, size = form.encode_frame(records, self._key, sequence, self._alignment)
        if self._file is None or (self.end + size > self._file_bytes_max and self.end > 0):
            await self.open_next()
        file = self._file
        assert file is not None, "there is one after `open_next`"
        end = (self.end or self._alignment) + size
        if end > self._allocated:
            wanted = max(min(self._allocated + self._step_bytes, self._file_bytes_max), end)
            try:
                self._allocated = await self._files.reserve(file, wanted, end)
            except OSError as error:
                if error.errno not in NO_ROOM or any(isinstance(record, EntryRun | EntryMix) for record in records):
                    raise
                await self.open_next()  # for a fence; a small file is large enough, and one may be kept back

    def _begin(self, file: File, buffers: Sequence[Buffer], size: int, end: int) -> "asyncio.Future[None]":
        start, self.end, self.size_bytes = self.end, end, size
        if end * 2 > self._file_bytes_max:
            self._files.prepare_next()
        return file.begin_write(start, buffers, sync=True)

    async def close(self) -> None:
        """OSError."""
        file, self._file = self._file, None
        if file is not None:
            await file.close()

    async def abandon(self) -> None:
        """Close it, whatever the disk says."""
        try:
            await self.close()
        except OSError as error:
            log.warning(line("journal file not closed", file_id=self.file_id, error=error))
