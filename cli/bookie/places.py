"""LedgerPlaces: bookies of each ledger by the metadata, and the locks of repairs (`bookie.upkeep.over_replication.Places`)."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bookkeeper.ledger_metadata.codec import LedgerState, MalformedLedgerMetadata, decode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import LedgerLayout
from bookkeeper.ledger_metadata.paths import ROOT
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.repair.underreplication.tree import MalformedUnderreplication, decode_lock, encode_lock, lock_path
from cli.bookie.missing_entries import is_named
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, NoNode, OutcomeUnknown
from ports.logs import line

log = logging.getLogger("bookie.upkeep.garbage")
_LEVEL = re.compile(r"\d+")


class LedgerPlaces:
    """Places as seen by the bookie called `bookie_id`."""

    def __init__(self, store: MetadataStore, registry: LedgerRegistry, bookie_id: str) -> None:
        self._store, self._registry, self._bookie_id = store, registry, bookie_id
        self._owner = f"{bookie_id} (garbage collection)"
        self._held: set[str] = set()
        """Locks that are ours, also those whose release has no known outcome."""

    async def is_elsewhere(self, ledger_id: int) -> bool:
        """An open ledger never is: its next ensemble may have this bookie."""
        try:
            metadata = (await self._registry.read(ledger_id)).metadata
        except NoSuchLedger:
            return False  # that is for garbage collection to prove
        except LedgerError as error:
            if isinstance(error.__cause__, MetadataError):
                raise MetadataError(f"ledger {ledger_id}: {error}") from error
            log.warning(line("metadata of a ledger cannot be read, the ledger is kept", ledger=ledger_id, reason=error))
            return False
        return metadata.state == LedgerState.CLOSED and not is_named(metadata, self._bookie_id)

    @asynccontextmanager
    async def repair_lock(self, ledger_id: int) -> AsyncIterator[bool]:
        """The lock that replication workers take, Apache's and ours."""
        for path in sorted(self._held):
            await self._release(path)
        path = lock_path(ledger_id)
        if not await self._take(path):
            yield False
            return
        self._held.add(path)
        try:
            yield True
        finally:
            await self._release(path)

    async def _take(self, path: str) -> bool:
        try:
            await self._store.put(path, encode_lock(self._owner), MUST_NOT_EXIST, ephemeral=True)
        except BadVersion:
            return False
        except OutcomeUnknown:
            found = await self._store.get(path)
            return found is not None and self._is_mine(found.value)
        return True

    def _is_mine(self, value: bytes) -> bool:
        try:
            return decode_lock(value) == self._owner
        except MalformedUnderreplication:
            return False

    async def _release(self, path: str) -> None:
        try:
            await self._store.delete(path)
        except NoNode:
            log.info(line("a lock was gone already", path=path))
        self._held.discard(path)


async def ledgers_of_bookie(store: MetadataStore, layout: LedgerLayout, bookie_id: str) -> list[int]:
    """Ledger ids, ascending; a ledger whose metadata cannot be read counts. MetadataError: the list would not be whole."""
    found = []
    waiting = [ROOT]
    while waiting:
        path = waiting.pop()
        for name in await store.children(path):
            child = f"{path}/{name}"
            ledger_id = layout.id_at(child.removeprefix(f"{ROOT}/"))
            if ledger_id is not None:
                node = await store.get(child)
                if node is not None and _names(node.value, bookie_id):
                    found.append(ledger_id)
            elif _LEVEL.fullmatch(name):
                waiting.append(child)
    return sorted(found)


def _names(metadata: bytes, bookie_id: str) -> bool:
    try:
        return any(bookie_id in segment.bookies for segment in decode_ledger_metadata(metadata).segments)
    except MalformedLedgerMetadata:
        return True  # it may: limbo costs a repair, and a wrong "no such entry" costs entries
