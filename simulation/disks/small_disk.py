"""SmallDisk and what is on it: a disk of finite size, shared by journal, entry logs, metadata and other programs' files.

Owns how much others take (`others_bytes`) and the rows of the metadata, in a format of its own: a log of whole
transactions, each with its length and checksum. A row that finds no room is not written at all.
"""

import pickle
from collections.abc import Mapping
from zlib import crc32

from metadata.sqlite_rows import LoadedRows, RowsRefused
from metadata.tree import Node
from ports.disk.disk import Disk, File
from simulation.disks.disk import CAPACITY_BYTES, SimDisk

ROWS = "rows"
HEADER_BYTES = 8
KEPT_BYTES, TIMES_FREE_MIN = 256 << 10, 4
"""Kept for what is written while nothing is free; where so many times as much is."""


class SmallDisk(SimDisk):
    """A disk of `size_bytes`, also after `heal`; others give their room back when they are asked to (`make_room`)."""

    size_bytes = CAPACITY_BYTES
    others_bytes = 0
    _greedy_left_bytes: int | None = None

    def free_bytes(self) -> int:
        free = super().free_bytes() - self.others_bytes
        if self._greedy_left_bytes is None or free <= self._greedy_left_bytes:
            return free
        self.others_bytes += free - self._greedy_left_bytes
        return self._greedy_left_bytes

    def fill(self, left_bytes: int, *, is_greedy: bool = False) -> None:
        """Others take all but so much, also (`is_greedy`) of what becomes free later."""
        self.others_bytes += max(0, self.free_bytes() - left_bytes)
        self._greedy_left_bytes = left_bytes if is_greedy else None

    def make_room(self) -> None:
        self.others_bytes, self._greedy_left_bytes = 0, None

    def heal(self) -> None:
        super().heal()
        self.capacity_bytes = self.size_bytes


class SimRows:
    """`metadata.sqlite_rows.Rows` in a file of a simulated disk."""

    def __init__(self, disk: Disk, file: File, end: int) -> None:
        self._disk, self._file, self._end = disk, file, end

    @classmethod
    async def open(cls, disk: Disk, directory: str) -> "tuple[SimRows, LoadedRows]":
        await disk.make_directories(directory)
        file = await disk.open(f"{directory}/{ROWS}", create=True, lane="metadata")
        await disk.sync_directory(directory)
        nodes, counters, end = dict[str, Node](), dict[str, int](), 0
        data = await file.read(0, file.size())
        while (row := _row_at(data, end)) is not None:
            for path, node in row[0].items():
                nodes.pop(path, None)
                if node is not None:
                    nodes[path] = node
            counters.update(row[1])
            end = row[2]
        return cls(disk, file, end), LoadedRows(
            [*nodes.items()], {parent: number for parent, number in counters.items() if number}
        )

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        body = pickle.dumps(([(path, node and _fields(node)) for path, node in nodes.items()], dict(counters)))
        row = len(body).to_bytes(4) + crc32(body).to_bytes(4) + body
        try:
            await self._file.write(self._end, [row + bytes(HEADER_BYTES)], sync=True)
        except OSError as error:
            raise RowsRefused(str(error)) from error
        self._end += len(row)

    async def keep_room(self) -> None:
        usage = await self._disk.usage("/")
        if usage.free_bytes >= TIMES_FREE_MIN * KEPT_BYTES:
            try:
                await self._file.allocate(self._end + KEPT_BYTES)
            except OSError as error:
                raise RowsRefused(str(error)) from error

    async def close(self) -> None:
        await self._file.close()


def _fields(node: Node) -> tuple[bytes, int, int, int]:
    return node.value, node.version, node.created_ms, node.modified_ms


def _row_at(data: bytes, start: int) -> tuple[dict[str, Node | None], dict[str, int], int] | None:
    """A transaction and where it ends; None: there is none that is whole."""
    begin = start + HEADER_BYTES
    end = begin + int.from_bytes(data[start : start + 4])
    body = data[begin:end]
    if not body or crc32(body) != int.from_bytes(data[start + 4 : begin]):
        return None
    nodes, counters = pickle.loads(body)  # of this very run
    return {path: fields and Node(*fields) for path, fields in nodes}, counters, end
