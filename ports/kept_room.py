"""KeptRoom: a file that keeps room on a disk back for those who cannot wait until somebody makes some.

The file holds nothing. A writer that finds the disk full gives the file up and writes again. The file is made again when the
disk has room for it several times over. Its size is a share of the disk, so that a small disk is not kept from its use.
"""

import logging

from ports.disk import Disk
from ports.logs import line

SHARE = 64
"""The disk holds this many times what is kept, at least."""
BYTES_MAX = 16 << 20
TIMES_FREE_MIN = 4
"""The file is made only where so many times its size is free: what is scarce is left to those who write."""
log = logging.getLogger("magnetar")


class KeptRoom:
    """One file. `keep` when there is room, `give_up` when there is none; a failure of the disk is logged and ends neither."""

    def __init__(self, disk: Disk, directory: str, name: str = "kept-room") -> None:
        self._disk, self._directory, self._path = disk, directory, f"{directory}/{name}"
        self.is_kept = False

    async def keep(self) -> bool:
        """Whether the room is kept now."""
        try:
            self.is_kept = self.is_kept or await self._make()
        except OSError as error:
            log.info(line("no room could be kept on the disk", path=self._path, error=error))
            await self.give_up()
        return self.is_kept

    async def _make(self) -> bool:
        usage = await self._disk.usage(self._directory)
        size_bytes = min(BYTES_MAX, usage.total_bytes // SHARE)
        is_there = await self._disk.exists(self._path)
        if not is_there and usage.free_bytes < TIMES_FREE_MIN * size_bytes:
            return False
        file = await self._disk.open(self._path, create=True)
        try:
            if file.size() < size_bytes:
                await file.allocate(size_bytes)
        finally:
            await file.close()
        return True

    async def give_up(self) -> bool:
        """Whether there was some, which others can have now."""
        self.is_kept = False
        try:
            await self._disk.remove(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            log.error(line("the room kept on the disk could not be given up", path=self._path, error=error))
            return False
        log.warning(line("the disk is full: the room kept back is given up", path=self._path))
        return True
