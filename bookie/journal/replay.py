"""Replay: what the journal holds after the checkpoint mark.

Frames have consecutive sequence numbers, within a file and from file to file. Where they end:
- The last frame may be torn: its write was in flight, and no add of it was acknowledged. Replay ends before it.
- A frame that cannot be read although a later one was written (in the same file, or in a following one) was durable: damage.
  BookKeeper's journal has no checksum and cannot tell the two (apache/bookkeeper#2220, #3956); here the start is refused.
- A failed write is given up with its file: the next file begins with the same sequence number, and overrules it.

The last frame may be readable without being durable: its writer was killed before the fsync, or the fsync failed, after which
Linux calls the pages clean. Later frames rely on it, so `make_end_durable` writes it again.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from bookie.errors import JournalDamaged
from bookie.journal import format_v1 as form
from bookie.journal.files import LANE, file_name, journal_ids
from bookie.journal.format_v1 import FrameHeader, JournalMark, Record
from ports.disk.disk import Disk, File

CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """A valid frame: where it begins (the first one of a file with the file's header), and the place after it."""

    start: int
    mark: JournalMark
    records: list[Record]


class JournalReplay:
    """One pass over the journal. After `frames` is exhausted, the rest of its attributes hold."""

    def __init__(
        self, disk: Disk, directory: str, secret: bytes, mark: JournalMark, alignment: int, *, ended: bool, lost: bool = False
    ) -> None:
        self._ended = ended
        self._lost = lost
        self._disk = disk
        self._directory = directory
        self._secret = secret
        self._alignment = alignment
        self._headers: dict[int, form.FileHeader | None] = {}
        self._last: Frame | None = None
        self.end = mark
        self.live: list[int] = []
        self.spare: list[int] = []
        self.next_id = 1

    async def frames(self) -> AsyncIterator[Frame]:
        """Every frame after the mark, in order. JournalDamaged when one is missing."""
        ids = await journal_ids(self._disk, self._directory)
        mark = self.end
        if mark.file_id and mark.file_id not in ids and not self._lost:
            raise JournalDamaged(
                f"{self._path(mark.file_id)} is missing, which the checkpoint names: acknowledged entries may be in the "
                f"journal files of {self._directory} alone. Is it mounted? was it emptied? Put it back; if it is lost for "
                "good, give empty journal and ledger directories to a new bookie"
            )
        self.next_id = max([*ids, mark.file_id]) + 1
        self.spare = [file_id for file_id in ids if file_id < mark.file_id]
        self.live = [file_id for file_id in ids if file_id >= mark.file_id]
        for file_id in self.live:
            self._headers[file_id] = await self._read_header(file_id)
        used = {file_id for file_id, header in self._headers.items() if header and header.first_sequence} | {mark.file_id}
        for index, file_id in enumerate(list(self.live)):
            async for frame in self._file_frames(file_id, self.live[index + 1 :], mark):
                used.add(file_id)
                self._last = frame
                yield frame
        unused = [file_id for file_id in self.live if file_id not in used]
        self.live = [file_id for file_id in self.live if file_id in used]
        self.spare += unused

    async def make_end_durable(self) -> None:
        """Write the last frame again, with fsync. A crash in between leaves it whole or torn: nothing is after it yet."""
        if self._last is None:
            return
        start, end = self._last.start, self._last.mark
        file = await self._open(end.file_id)
        try:
            await file.write(start, [await file.read(start, end.offset - start)], sync=True)
        finally:
            await file.close()

    def _path(self, file_id: int) -> str:
        return f"{self._directory}/{file_name(file_id)}"

    async def _open(self, file_id: int) -> File:
        return await self._disk.open(self._path(file_id), lane=LANE)

    async def _read_header(self, file_id: int) -> form.FileHeader | None:
        file = await self._open(file_id)
        try:
            block = await file.read(0, form.FILE_HEADER_BYTES)
            return form.decode_file_header(block, file_id, form.file_key(self._secret, file_id))
        except form.BadRecord as error:
            raise JournalDamaged(f"{file.path}: {error}") from error
        finally:
            await file.close()

    async def _file_frames(self, file_id: int, later: list[int], mark: JournalMark) -> AsyncIterator[Frame]:
        header = self._headers[file_id]
        alignment = header.alignment if header else self._alignment
        later_firsts = [found.first_sequence for other in later if (found := self._headers[other]) and found.first_sequence]
        marked = file_id == mark.file_id and mark.sequence > 0
        start = mark.offset if marked else alignment
        unused = header is not None and header.first_sequence == form.NO_FRAME_YET
        if header and not unused and not marked and header.first_sequence != self.end.sequence + 1:
            raise JournalDamaged(
                f"{self._path(file_id)} begins with frame {header.first_sequence}, but the journal before it ends with "
                f"frame {self.end.sequence} at {self.end.file_id:016x} offset {self.end.offset}: frames are missing or damaged"
            )
        file = await self._open(file_id)
        try:
            reader = _FileReader(file, form.file_key(self._secret, file_id), file_id, alignment)
            # Without its header, too: the key alone proves that a frame is of this file.
            async for frame in reader.frames(start, self.end.sequence + 1, min(later_firsts, default=1 << 63)):
                start = frame.mark.offset
                self.end = frame.mark
                yield frame
            # A second frame is written after the first one with its header; after the mark of a clean stop, to other files.
            if not (later_firsts or unused or (marked and self._ended)):
                await reader.check_tail(start, self.end.sequence + 1)
        except form.BadRecord as error:
            raise JournalDamaged(f"{file.path}: {error}") from error
        finally:
            await file.close()


class _FileReader:
    """Frames of one file, by chunks."""

    def __init__(self, file: File, key: int, file_id: int, alignment: int) -> None:
        self._file = file
        self._key = key
        self._file_id = file_id
        self._alignment = alignment

    async def frames(self, offset: int, sequence: int, limit: int) -> AsyncIterator[Frame]:
        """Consecutive valid frames from `offset` on, those before `limit`."""
        wanted = CHUNK_BYTES
        while sequence < limit:
            chunk = await self._file.read(offset, wanted)
            found, missing = 0, 0
            for header, body in self._parse(chunk, sequence):
                if len(body) < header.size_bytes - form.FRAME_HEADER_BYTES:
                    missing = header.size_bytes
                    break
                records = form.decode_body(header, body) if sequence < limit else None
                if records is None:
                    return
                start = 0 if offset == self._alignment else offset
                offset += form.aligned(header.size_bytes, self._alignment)
                yield Frame(start, JournalMark(sequence, self._file_id, offset), records)
                sequence += 1
                found += 1
            if not found and (missing <= wanted or offset + missing > self._file.size()):
                return
            wanted = max(CHUNK_BYTES, missing)

    def _parse(self, chunk: bytes, sequence: int) -> Iterator[tuple[FrameHeader, memoryview]]:
        """Headers that follow one another with consecutive sequences; the body of the last may be cut by the chunk's end."""
        view = memoryview(chunk)
        position = 0
        while (header := form.decode_frame_header(view, position, self._key)) and header.sequence == sequence:
            yield header, view[position + form.FRAME_HEADER_BYTES : position + header.size_bytes]
            position += form.aligned(header.size_bytes, self._alignment)
            sequence += 1

    async def check_tail(self, offset: int, sequence: int) -> None:
        """Nothing after `offset` may be a frame later than `sequence`, which is missing or torn."""
        torn_at = offset
        while chunk := await self._file.read(offset, CHUNK_BYTES // self._alignment * self._alignment):
            place = chunk.find(form.FRAME_MAGIC)
            while place >= 0:
                header = None if place % self._alignment else form.decode_frame_header(chunk, place, self._key)
                if header and header.sequence > sequence:
                    raise JournalDamaged(
                        f"{self._file.path}: frame {sequence} at offset {torn_at} cannot be read, although frame "
                        f"{header.sequence} at offset {offset + place} was written after it: the file is damaged"
                    )
                place = chunk.find(form.FRAME_MAGIC, place + 1)
            offset += len(chunk)
