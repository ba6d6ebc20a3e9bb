"""SqliteRows: the durable rows of an embedded metadata store. Owns the SQLite file and the one thread that touches it.

A `write` is one transaction, and returns after SQLite has synced its log (WAL with synchronous=FULL): all of it is there after
a power cut, or nothing. The file is held exclusively, so that a second process is refused. Never decides what a node is.
On a full disk the log is moved into the database and written from its beginning again. Room for that is kept in the files
themselves, from the first start on: free pages in the database, and a log that keeps its length, also over a clean stop. The
last of the free pages are for writes that add no node.
"""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from metadata.store import MetadataError
from metadata.tree import Node

T = TypeVar("T")

FILE_NAME = "metadata.sqlite"
KEPT_BYTES_MAX, KEPT_SHARE, TIMES_FREE_MIN = 2 << 20, 64, 4
"""Room that is kept in both files: so much, or this part of the disk; where so many times as much is free."""
GROWTH_SHARE = 4
"""While the disk is full, writes that add nodes leave this part of the free pages that are kept to the others."""
LOG_HEADER_BYTES = 32
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE nodes (
    path TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, modified_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counters (parent TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
"""
_PUT_NODE = "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?)"
_DELETE_NODE = "DELETE FROM nodes WHERE path = ?"
_PUT_COUNTER = "INSERT OR REPLACE INTO counters VALUES (?, ?)"
_DELETE_COUNTER = "DELETE FROM counters WHERE parent = ?"
_FILL = "CREATE TABLE IF NOT EXISTS kept_room (filler BLOB)", "INSERT INTO kept_room VALUES (zeroblob(?))"
_EMPTY = "DROP TABLE IF EXISTS kept_room"


_NOT_FOR_GOOD = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
}
"""Error codes of SQLite when the machine refuses something now: the file is as it was, and a later write may succeed."""


class RowsFailed(MetadataError):
    """The file could not be read or written."""


class RowsRefused(RowsFailed):
    """The disk is full or fails: nothing of the write is in the file, and it may be tried again."""


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """Everything that is durable."""

    nodes: list[tuple[str, Node]]
    counters: dict[str, int]


class Rows(Protocol):
    """Rows in which a store keeps its nodes. A path or parent that maps to None, or to 0, is removed."""

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        """All of it or nothing. `grows`: it adds nodes, and is refused where little but kept room is left for it."""

    async def keep_room(self) -> None:
        """Keep room for later writes where the disk has enough, so that they need nothing more of a full disk."""

    async def close(self) -> None: ...


class SqliteRows:
    """An open file; satisfies `Rows`."""

    def __init__(self, worker: ThreadPoolExecutor, connection: sqlite3.Connection, path: Path) -> None:
        self._worker, self._connection, self._path = worker, connection, path

    @classmethod
    async def open(cls, directory: str) -> "tuple[SqliteRows, LoadedRows]":
        """Made where missing. RowsFailed when it is damaged, in use by another process, or of a later version."""
        worker = ThreadPoolExecutor(1, thread_name_prefix="metadata")
        try:
            connection, loaded = await _call(worker, lambda: _opened(directory))
            return cls(worker, connection, Path(directory, FILE_NAME)), loaded
        except RowsFailed:
            worker.shutdown(wait=False)
            raise

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        await _call(self._worker, lambda: self._write(nodes, counters, grows))

    def _write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], grows: bool) -> None:
        if grows:
            _check_growth(self._connection, self._path)
        _write(self._connection, nodes, counters)

    async def keep_room(self) -> None:
        """Nearly always there is enough already. RowsFailed."""
        await _call(self._worker, lambda: _keep_room(self._connection, self._path))

    async def close(self) -> None:
        try:
            await _call(self._worker, lambda: _close(self._connection, self._path))
        finally:
            self._worker.shutdown(wait=False)


async def _call(worker: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(worker, call)
    except (sqlite3.Error, OSError, MemoryError) as error:
        kind = RowsRefused if _is_passing(error) else RowsFailed
        raise kind(f"{type(error).__name__}: {error}") from error


def _is_passing(error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _NOT_FOR_GOOD
    return True  # of the operating system, not of the file


def _opened(directory: str) -> tuple[sqlite3.Connection, LoadedRows]:
    connection = _connect(directory)
    try:
        loaded = _load(connection)
        with suppress(sqlite3.Error, OSError):  # without room the file serves with what it has
            _keep_room(connection, Path(directory, FILE_NAME))
        return connection, loaded
    except BaseException:
        connection.close()
        raise


def _connect(directory: str) -> sqlite3.Connection:
    path = f"{directory}/{FILE_NAME}"
    if not Path(path).exists():
        _make_directory(Path(directory))
    Path(directory, "kept-room").unlink(missing_ok=True)  # earlier versions kept room in a file of its own
    _put_log_back(Path(path))
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise RowsFailed(f"{path} was written by a later version ({version}; this software reads {SCHEMA_VERSION})")
        if version == 0:
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    except sqlite3.Error as error:
        connection.close()
        reason = "it is in use by another process" if "locked" in str(error) else str(error)
        raise RowsFailed(f"{path} cannot be opened: {reason}") from error
    except RowsFailed:
        connection.close()
        raise
    return connection


def _make_directory(directory: Path) -> None:
    """Durable with the name it has in its parent; SQLite syncs what is inside."""
    directory.mkdir(parents=True, exist_ok=True)
    for each in (directory, directory.parent):
        descriptor = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _load(connection: sqlite3.Connection) -> LoadedRows:
    rows = connection.execute("SELECT path, value, version, created_ms, modified_ms FROM nodes")
    nodes = [(path, Node(value, version, created_ms, modified_ms)) for path, value, version, created_ms, modified_ms in rows]
    return LoadedRows(nodes, dict(connection.execute("SELECT parent, next FROM counters")))


def _write(connection: sqlite3.Connection, nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None:
    try:
        _write_once(connection, nodes, counters)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
            raise
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        _write_once(connection, nodes, counters)


def _write_once(connection: sqlite3.Connection, nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None:
    put = [(path, node.value, node.version, node.created_ms, node.modified_ms) for path, node in nodes.items() if node]
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(_DELETE_NODE, [(path,) for path, node in nodes.items() if node is None])
        connection.executemany(_PUT_NODE, put)
        connection.executemany(_DELETE_COUNTER, [(parent,) for parent, number in counters.items() if not number])
        connection.executemany(_PUT_COUNTER, [(parent, number) for parent, number in counters.items() if number])
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _kept_log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal-kept")


def _keep_room(connection: sqlite3.Connection, path: Path) -> None:
    """Keep room in the database; the write goes through the log, which has its room afterwards too."""
    disk = shutil.disk_usage(path.parent)
    wanted, free_bytes = _kept_bytes(disk.total), _free_bytes(connection)
    log = _log_of(path)
    has_log = log.exists() and log.stat().st_size >= wanted
    if (free_bytes >= wanted // 2 and has_log) or disk.free < TIMES_FREE_MIN * wanted:
        return
    connection.execute(_FILL[0])
    connection.execute(_FILL[1], (wanted,))
    connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    connection.execute(_EMPTY)


def _kept_bytes(disk_bytes: int) -> int:
    return min(KEPT_BYTES_MAX, disk_bytes // KEPT_SHARE)


def _free_bytes(connection: sqlite3.Connection) -> int:
    """Free bytes of pages inside the database."""
    (page_bytes,), (free_pages,) = (connection.execute(f"PRAGMA {what}").fetchone() for what in ("page_size", "freelist_count"))
    return int(page_bytes * free_pages)


def _check_growth(connection: sqlite3.Connection, path: Path) -> None:
    """RowsRefused when what is left is for writes that add no node."""
    disk = shutil.disk_usage(path.parent)
    wanted = _kept_bytes(disk.total)
    if disk.free < wanted and _free_bytes(connection) < wanted // GROWTH_SHARE:
        raise RowsRefused("the disk is full; room that is kept is for ledgers that end, cursors and deletes")


def _close(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite removes the log, and its room would be gone: it has a second name meanwhile, where the file system knows such."""
    log, kept = _log_of(path), _kept_log_of(path)
    with suppress(OSError):
        os.link(log, kept)
    connection.close()
    _put_log_back(path)


def _put_log_back(path: Path) -> None:
    """A log without its header is an empty one to SQLite, and has its room. One that was not removed is in use."""
    log, kept = _log_of(path), _kept_log_of(path)
    if not kept.exists():
        return
    if log.exists():
        kept.unlink()
        return
    with kept.open("r+b") as file:
        file.write(bytes(LOG_HEADER_BYTES))
        file.flush()
        os.fsync(file.fileno())
    kept.replace(log)
