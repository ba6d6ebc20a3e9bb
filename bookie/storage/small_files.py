"""Small files that are replaced as a whole: written beside, synced, renamed, and the directory synced."""

from ports.disk.disk import Disk
from ports.disk.kept_room import NO_ROOM, KeptRoom

LANE = "entry-log"
TEMPORARY_SUFFIX = ".tmp"


async def replace_file(disk: Disk, directory: str, name: str, content: bytes, kept: KeptRoom | None = None) -> None:
    """Durable when this returns; before that, the old content or the new one, never a mixture. `kept`: for a full disk."""
    temporary = f"{directory}/{name}{TEMPORARY_SUFFIX}"
    try:
        await _write_whole(disk, temporary, content)
    except OSError as error:
        if error.errno not in NO_ROOM or kept is None or not await kept.take(temporary):
            raise
        await _write_whole(disk, temporary, content)
    await disk.rename(temporary, f"{directory}/{name}")
    await disk.sync_directory(directory)


async def _write_whole(disk: Disk, path: str, content: bytes) -> None:
    """Write the content into the room that the file has; the file is cut afterwards."""
    file = await disk.open(path, create=True, lane=LANE)
    try:
        await file.write(0, [content])
        await file.truncate(len(content))
        await file.sync()
    finally:
        await file.close()


async def read_file(disk: Disk, path: str, size: int | None = None) -> bytes:
    """The whole file, or its first `size` bytes; FileNotFoundError."""
    file = await disk.open(path, lane=LANE)
    try:
        return await file.read(0, file.size() if size is None else size)
    finally:
        await file.close()


async def make_durable_directory(disk: Disk, path: str) -> None:
    """Make a directory and those above it; their names are durable when this returns."""
    missing = []
    parent = path
    while parent and not await disk.exists(parent):
        missing.append(parent)
        parent = _parent(parent)
    await disk.make_directories(path)
    for made in missing:
        await disk.sync_directory(_parent(made) or ".")


def _parent(path: str) -> str:
    head, _, _ = path.rpartition("/")
    return head or ("/" if path.startswith("/") and path != "/" else "")
