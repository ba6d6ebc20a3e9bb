"""KeptRoom: files that keep room on a disk for writers that cannot wait until an operator makes some.

The files hold nothing. A writer that finds the disk full takes one under a name of its own and writes into it: its blocks never
become free in between, so no other program gets them. All are made again when the disk has room for them several times over.
Together they are a share of the disk, so that a small disk is not kept from its use.
"""

import errno
import logging

from ports.disk.disk import Disk
from ports.logs import line

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a full disk."""
SHARE = 64
"""The disk is at least this many times as large as the kept room."""
BYTES_MAX = 16 << 20
TIMES_FREE_MIN = 4
"""The files are made only where so many times their size is free: scarce room is left to writers."""
log = logging.getLogger("interpulse")


class KeptRoom:
    """Files of one directory. `keep` when there is room, `take` when there is none; a failure of the disk is logged and ends
    neither."""

    def __init__(
        self, disk: Disk, directory: str, name: str, *, piece_bytes_min: int, pieces_max: int, bytes_max: int = BYTES_MAX
    ) -> None:
        """`piece_bytes_min`: of each file, where the share of the disk is that large. `bytes_max`: of all of them."""
        self._disk, self._directory = disk, directory
        self._piece_bytes_min, self._bytes_max = piece_bytes_min, bytes_max
        self._paths = [f"{directory}/{name}{f'.{number}' if number else ''}" for number in range(pieces_max)]
        self.is_kept = False

    async def keep(self) -> bool:
        """Whether all of the room is kept now."""
        try:
            self.is_kept = self.is_kept or await self._make()
        except OSError as error:
            log.info(line("no room could be kept on the disk", directory=self._directory, error=error))
        return self.is_kept

    async def _make(self) -> bool:
        usage = await self._disk.usage(self._directory)
        all_bytes = min(self._bytes_max, usage.total_bytes // SHARE)
        piece_bytes = min(all_bytes, max(self._piece_bytes_min, all_bytes // len(self._paths)))
        paths = self._paths[: max(1, all_bytes // max(1, piece_bytes))]
        missing = [path for path in paths if not await self._disk.exists(path)]
        if missing and usage.free_bytes < TIMES_FREE_MIN * len(missing) * piece_bytes:
            return False
        for path in missing:
            await self._make_piece(path, piece_bytes)
        return True

    async def _make_piece(self, path: str, size_bytes: int) -> None:
        """Under another name first: a file that has this one has its room."""
        begun = f"{path}.tmp"
        file = await self._disk.open(begun, create=True)
        try:
            await file.allocate(size_bytes)
        except OSError:
            await self._disk.remove(begun)
            raise
        finally:
            await file.close()
        await self._disk.rename(begun, path)

    async def take(self, path: str) -> bool:
        """Whether there was some, which is the file at `path` now, all zeros; what was there is gone. OSError."""
        self.is_kept = False
        for kept in self._paths:
            if await self._disk.exists(kept):
                await self._disk.rename(kept, path)
                log.warning(line("the disk is full: room kept back is used", path=path))
                return True
        return False
