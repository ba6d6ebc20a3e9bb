"""LogMetadata: the node of one managed ledger, written with compare-and-set so that a second owner is noticed.

Owns the node's version, the properties, the terminated position and what waits for its deletion. One write at a time; each
writes what is true when its turn comes.
"""

import asyncio
from collections.abc import Callable, Mapping

from managed_ledger.errors import ManagedLedgerError, ManagedLedgerFenced, MetadataFull
from metadata.store import BadVersion, MetadataError, MetadataStore, StoreFull, Versioned
from ports.loop.side_by_side import unbroken
from wire.compressed_metadata import UNCOMPRESSED, Compression, compressed
from wire.position import Position

from .info import ListedLedger, decode_info, encode_info
from .sequence import LedgerSequence

ROOT = "/managed-ledgers/"


class LogMetadata:
    """The stored form of `sequence`; `node` is the first. The values of `properties`, `terminated`, `listed` and `deletable`
    are stored ones. BrokenMetadata.

    `own_properties` is asked at each write: it gives the properties with those that the broker keeps there itself.
    """

    def __init__(
        self,
        store: MetadataStore,
        name: str,
        node: Versioned,
        sequence: LedgerSequence,
        compression: Compression = UNCOMPRESSED,
        own_properties: Callable[[Mapping[str, str]], dict[str, str]] = dict,
    ) -> None:
        found = decode_info(name, node.value)
        self.name = name
        self.path = ROOT + name
        self.sequence = sequence
        self.version = node.stat.version
        self.properties = dict(found.properties)
        self.terminated = found.terminated
        self._deleting = {ledger.ledger_id: ledger for ledger in found.ledgers if ledger.is_deleting}
        self.deletable = tuple(sorted(self._deleting))
        """Ledgers that the node says are to be deleted."""
        self.listed = tuple(ledger.ledger_id for ledger in found.ledgers)
        """Ledgers that the node names."""
        self._found = {ledger.ledger_id: ledger.other for ledger in found.ledgers}
        self._other = found.other
        self._store = store
        self._value = node.value
        self._compression = compression
        self._own_properties = own_properties
        self._turn = asyncio.Lock()

    async def write(
        self, *, properties: Mapping[str, str] | None = None, terminated: Position | None = None, is_certain: bool = False
    ) -> None:
        """Store the ledgers as they are now, with these changes. ManagedLedgerFenced when another owner wrote; where nothing
        has changed, this is checked only if `is_certain`."""
        await unbroken(self._write(properties, terminated, is_certain))

    async def _write(self, properties: Mapping[str, str] | None, terminated: Position | None, is_certain: bool) -> None:
        async with self._turn:
            new_properties = self._own_properties(self.properties if properties is None else properties)
            new_terminated = self.terminated if terminated is None else terminated
            deleting = tuple(sorted(self._deleting))
            listed = self._listed()
            value = compressed(encode_info(listed, new_terminated, new_properties, self._other), self._compression)
            if is_certain or value != self._value:
                await self._put(value)
            self.listed = tuple(ledger.ledger_id for ledger in listed)
            self.deletable = tuple(each for each in deleting if each in self._deleting)  # deleted meanwhile: gone for certain
            self.properties, self.terminated = new_properties, new_terminated

    async def _put(self, value: bytes) -> None:
        try:
            stat = await self._store.put(self.path, value, self.version)
        except BadVersion as error:
            raise ManagedLedgerFenced(f"{self.name}: another owner wrote its metadata: {error}") from error
        except StoreFull as error:
            raise MetadataFull(f"{self.name}: {error}") from error
        except MetadataError as error:
            raise ManagedLedgerError(f"{self.name}: its metadata could not be written: {error}") from error
        self.version, self._value = stat.version, value

    def _listed(self) -> list[ListedLedger]:
        listed = dict(self._deleting)
        for span in self.sequence:
            other = self._found.get(span.ledger_id, b"")
            entries = None if span.is_open else span.entries
            listed[span.ledger_id] = ListedLedger(span.ledger_id, entries, span.size_bytes, span.closed_at_ms, other=other)
        return [listed[ledger_id] for ledger_id in sorted(listed)]

    def mark_deleting(self, ledger_id: int) -> None:
        """Mark a ledger for deletion: no part of the log any more. Call before it leaves the sequence, write after."""
        span = self.sequence.span(ledger_id)
        entries, size_bytes, closed_at_ms = (0, 0, 0) if span is None else (span.entries, span.size_bytes, span.closed_at_ms)
        other = self._found.get(ledger_id, b"")
        self._deleting[ledger_id] = ListedLedger(ledger_id, entries, size_bytes, closed_at_ms, True, other)

    def deleted(self, ledger_id: int) -> None:
        """The ledger is gone for certain. The next write forgets it."""
        del self._deleting[ledger_id]
        self.deletable = tuple(each for each in self.deletable if each != ledger_id)
        self._found.pop(ledger_id, None)
