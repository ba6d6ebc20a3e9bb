"""SqliteRows: the durable rows of an embedded metadata store. Owns the SQLite file and the one thread that touches it.

A `write` is one transaction, and returns after SQLite has synced its log (WAL with synchronous=FULL): all of it is there after
a power cut, or nothing. The file is held exclusively, so that a second process is refused. Never decides what a node is.
On a full disk the log is moved into the database, where most of it has its place, and written from its beginning again.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from metadata.store import MetadataError
from metadata.tree import Node

T = TypeVar("T")

FILE_NAME = "metadata.sqlite"
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


_NOT_FOR_GOOD = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
}
"""What SQLite says when the machine refuses it something now: the file is as it was, and a later write may succeed."""


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
    """Where a store keeps its nodes. A path or parent that maps to None, or to 0, is removed."""

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None: ...
    async def close(self) -> None: ...


class SqliteRows:
    """An open file; satisfies `Rows`."""

    def __init__(self, worker: ThreadPoolExecutor, connection: sqlite3.Connection) -> None:
        self._worker, self._connection = worker, connection

    @classmethod
    async def open(cls, directory: str) -> "tuple[SqliteRows, LoadedRows]":
        """Made where missing. RowsFailed when it is damaged, in use by another process, or of a later version."""
        worker = ThreadPoolExecutor(1, thread_name_prefix="metadata")
        try:
            connection = await _call(worker, lambda: _connect(directory))
            return cls(worker, connection), await _call(worker, lambda: _load(connection))
        except RowsFailed:
            worker.shutdown(wait=False)
            raise

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None:
        await _call(self._worker, lambda: _write(self._connection, nodes, counters))

    async def close(self) -> None:
        try:
            await _call(self._worker, self._connection.close)
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


def _connect(directory: str) -> sqlite3.Connection:
    path = f"{directory}/{FILE_NAME}"
    if not Path(path).exists():
        _make_directory(Path(directory))
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
