"""A standalone's metadata as a file, and from the file into a cluster's store: `interpulse export-metadata`, `import-metadata`.

The file is text, format 1, one JSON value a line: a head with whose bookie the ledgers are on; each node with its path and its
value in base64, parents before children; each counter of sequential names, so that no ledger id is given twice; the number
of lines before it, so that a file cut short is noticed. Owns the format and the order of the writes; opens nothing.
"""

import asyncio
import base64
import binascii
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metadata.paths import ROOT, check_path
from metadata.store import MUST_NOT_EXIST, Delete, MetadataError, MetadataStore, Put

FORMAT = 1
_KEY = "magnetarMetadata"  # the product's first name: it is in files that people keep
BATCH = 200
"""Reads at once, and writes in one commit."""
BATCH_BYTES_MAX = 256 * 1024
COUNTED_AT_ONCE = 500


class BadCopy(Exception):
    """The file is not one, or is not whole; the message says where."""


@dataclass(frozen=True, slots=True)
class BookieOfCopy:
    """The one bookie of a standalone: the name that ledgers know it by, and its directories, absolute."""

    bookie_id: str
    journal_directory: str
    ledger_directory: str


@dataclass(frozen=True, slots=True)
class MetadataCopy:
    """Everything that is durable: values by path, and the next number for each parent of sequential names."""

    nodes: Mapping[str, bytes]
    counters: Mapping[str, int]
    bookie: BookieOfCopy | None


def write_copy(copy: MetadataCopy) -> Iterator[str]:
    """Lines, without their ends."""
    bookie = copy.bookie
    directories = {} if bookie is None else {"journal": bookie.journal_directory, "ledgers": bookie.ledger_directory}
    yield _line({_KEY: FORMAT, "bookie": None if bookie is None else {"id": bookie.bookie_id} | directories})
    paths = sorted((path for path in copy.nodes if path != ROOT), key=lambda path: (path.count("/"), path))
    for path in paths:
        yield _line({"path": path, "value": base64.b64encode(copy.nodes[path]).decode()})
    for parent in sorted(copy.counters):
        yield _line({"counter": parent, "next": copy.counters[parent]})
    yield _line({"end": 1 + len(paths) + len(copy.counters)})


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def read_copy(lines: Iterable[str]) -> MetadataCopy:
    """BadCopy names the line."""
    nodes: dict[str, bytes] = {}
    counters: dict[str, int] = {}
    bookie: BookieOfCopy | None = None
    number, is_whole = 0, False
    for number, text in enumerate(lines, 1):
        try:
            value = _object(text)
            if number == 1:
                bookie = _head(value)
            elif is_whole:
                raise BadCopy("something after the end")
            elif "path" in value:
                nodes[_path(value["path"])] = base64.b64decode(value["value"], validate=True)
            elif "counter" in value:
                counters[_path(value["counter"])] = int(value["next"])
            else:
                is_whole = value["end"] == number - 1
        except (ValueError, KeyError, TypeError, binascii.Error, MetadataError, BadCopy) as error:
            raise BadCopy(f"line {number}: {error or 'not understood'}; export again") from error
    if not is_whole:
        raise BadCopy(f"it ends after line {number}, cut short: export again")
    return MetadataCopy(nodes, counters, bookie)


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise BadCopy("not an object of JSON")
    return value


def _path(path: str) -> str:
    check_path(path)
    return path


def _head(value: dict[str, Any]) -> BookieOfCopy | None:
    if value.get(_KEY) != FORMAT:
        raise BadCopy(f"not metadata of format {FORMAT}")
    bookie = value["bookie"]
    return None if bookie is None else BookieOfCopy(bookie["id"], bookie["journal"], bookie["ledgers"])


class CopyTarget:
    """Writes a copy into a store that has nothing of its own where the copy has something. May be run again."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def write(self, copy: MetadataCopy) -> int:
        """Count of missing nodes. MetadataError, before anything is written, when a node is there with another value."""
        missing = await self._missing(copy.nodes)
        for batch in _batches(missing, copy.nodes):
            await self._store.commit([Put(path, copy.nodes[path], MUST_NOT_EXIST) for path in batch])
        for parent, counter in sorted(copy.counters.items()):
            await self._count(parent, counter)
        return len(missing)

    async def _missing(self, nodes: Mapping[str, bytes]) -> list[str]:
        paths = sorted(nodes, key=lambda path: (path.count("/"), path))
        missing = []
        for start in range(0, len(paths), BATCH):
            batch = paths[start : start + BATCH]
            for path, found in zip(batch, await asyncio.gather(*map(self._store.get, batch)), strict=True):
                if found is None:
                    missing.append(path)
                elif found.value != nodes[path]:
                    raise MetadataError(
                        f"{path} is there already, and says something else: a cluster has metadata there. "
                        "Give --metadata-store a path of its own after the servers, such as zk:host:2181/moved"
                    )
        return missing

    async def _count(self, parent: str, counter: int) -> None:
        """Until the store's next sequential name below `parent` has at least this number."""
        reached = 0
        while reached < counter:
            count = min(counter - reached, COUNTED_AT_ONCE) if reached else 1
            made = await self._store.commit([Put(f"{parent}/ID-", b"", ephemeral=True, sequential=True)] * count)
            paths = [stat.path for stat in made if stat is not None]
            await self._store.commit([Delete(path) for path in paths])
            reached = max(int(path.rpartition("-")[2]) for path in paths) + 1


def _batches(paths: Sequence[str], nodes: Mapping[str, bytes]) -> Iterator[list[str]]:
    """Batches in order; none above BATCH nodes, or above BATCH_BYTES_MAX unless it is one node."""
    batch: list[str] = []
    for path, following in itertools.pairwise([*paths, ""]):
        batch.append(path)
        size = sum(len(nodes[each]) for each in batch) + len(nodes.get(following, b""))
        if len(batch) == BATCH or size > BATCH_BYTES_MAX or not following:
            yield batch
            batch = []
