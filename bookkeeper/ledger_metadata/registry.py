"""LedgerRegistry: ledger metadata in the metadata store. Owns paths, versions and compare-and-set; decides no state change."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bookkeeper.ledger_metadata.codec import (
    LedgerMetadata,
    MalformedLedgerMetadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from bookkeeper.ledger_metadata.layouts import HIERARCHICAL, LedgerLayout, UnknownLayout, parse_layout
from bookkeeper.ledger_metadata.ledger_ids import LedgerIds
from bookkeeper.ledger_metadata.paths import AVAILABLE, INSTANCE_ID, LAYOUT, READ_ONLY, ROOT
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from metadata.store import (
    MUST_NOT_EXIST,
    BadVersion,
    MetadataError,
    MetadataStore,
    NoNode,
    NotEmpty,
    OutcomeUnknown,
    Put,
    StoreUnavailable,
    Versioned,
)
from ports.rng import Rng

CREATE_ATTEMPTS_MAX = 100
"""Ids in a row that may turn out to be taken: the generator lost count, or an operator wrote ledgers by hand."""
UPDATE_ATTEMPTS_MAX = 100
"""Compare-and-set rounds of one update; each lost round is another client's progress."""

UNAVAILABLE_MAX = 3
"""Times that the store may be away for one update; each waits as long as the store's own time limit."""


@dataclass(frozen=True, slots=True)
class RegisteredLedger:
    """A ledger's metadata at one version of its node."""

    ledger_id: int
    metadata: LedgerMetadata
    version: int


class LedgerRegistry:
    """All ledgers of one metadata store. Failures of the store are LedgerErrors here.

    A store without a layout gets the first of `layouts`; one with another than these is refused: a caller that accepts more
    than the hierarchical one must ask `layout` for every path, or ledgers that are there are not found, and their entries are
    collected.
    """

    def __init__(self, store: MetadataStore, rng: Rng, layouts: Sequence[LedgerLayout] = (HIERARCHICAL,)) -> None:
        self._store = store
        self._rng = rng
        self._ids = LedgerIds(store)
        self._layouts = layouts
        self._layout = layouts[0]

    async def initialise(self) -> None:
        """On a new store: the nodes that `initnewcluster` makes. On another: learn its layout."""
        layout = await self._store.get(LAYOUT)
        if layout is None:
            instance = str(uuid.UUID(int=self._rng.getrandbits(128), version=4)).encode()
            try:
                await self._store.commit(
                    [
                        Put(AVAILABLE, b""),
                        Put(READ_ONLY, b""),
                        Put(INSTANCE_ID, instance, MUST_NOT_EXIST),
                        Put(LAYOUT, self._layout.text, MUST_NOT_EXIST),
                    ]
                )
            except BadVersion:
                layout = await self._store.get(LAYOUT)
        if layout is not None:
            try:
                self._layout = parse_layout(layout.value)
            except UnknownLayout as error:
                raise LedgerError(f"{ROOT}: {error}") from error
            if self._layout not in self._layouts:
                raise LedgerError(f"{LAYOUT} is that of the {self._layout.name} layout, which is not written here")

    @property
    def layout(self) -> LedgerLayout:
        """Once initialised."""
        return self._layout

    def path(self, ledger_id: int) -> str:
        """Path of a ledger's node; LedgerError for an id that has none in this layout."""
        try:
            return self._layout.path(ROOT, ledger_id)
        except MetadataError as error:
            raise LedgerError(str(error)) from error

    async def create(self, metadata: LedgerMetadata) -> RegisteredLedger:
        """Under a new id. When the answer is lost, the creation token tells whether it is there."""
        data = encode_ledger_metadata(metadata)
        for _ in range(CREATE_ATTEMPTS_MAX):
            ledger_id = await self._next_id()
            try:
                stat = await self._store.put(self.path(ledger_id), data, MUST_NOT_EXIST)
            except BadVersion:
                continue
            except OutcomeUnknown as error:
                found = await self._mine(ledger_id, metadata, error)
                if found is not None:
                    return found
                continue
            except MetadataError as error:
                raise LedgerError(f"no ledger could be made: {error}") from error
            return RegisteredLedger(ledger_id, metadata, stat.version)
        raise LedgerError(f"{CREATE_ATTEMPTS_MAX} ledger ids in a row were taken")

    async def _next_id(self) -> int:
        try:
            return await self._ids.take()
        except MetadataError as error:
            raise LedgerError(f"no ledger could be made: {error}") from error

    async def _mine(self, ledger_id: int, metadata: LedgerMetadata, error: OutcomeUnknown) -> RegisteredLedger | None:
        """Registered ledger if this client made it, known by the token that it drew; LedgerError without a token."""
        if metadata.creation_token is None:
            raise LedgerError(f"no ledger could be made: {error}") from error
        try:
            found = await self.read(ledger_id)
        except NoSuchLedger:
            return None
        return found if found.metadata.creation_token == metadata.creation_token else None

    async def read(self, ledger_id: int) -> RegisteredLedger:
        try:
            found = await self._store.get(self.path(ledger_id))
        except MetadataError as error:
            raise LedgerError(f"ledger {ledger_id}: {error}") from error
        if found is None:
            raise NoSuchLedger(f"ledger {ledger_id}")
        return _registered(ledger_id, found)

    async def update(
        self, ledger: RegisteredLedger, change: Callable[[LedgerMetadata], LedgerMetadata | None]
    ) -> RegisteredLedger:
        """Compare-and-set: `change` gives the metadata to write (None: nothing), and is asked again when another client was
        faster, or when the outcome of the write is unknown: it must recognise its own change."""
        unavailable = 0
        for _ in range(UPDATE_ATTEMPTS_MAX):
            metadata = change(ledger.metadata)
            if metadata is None:
                return ledger
            try:
                stat = await self._store.put(self.path(ledger.ledger_id), encode_ledger_metadata(metadata), ledger.version)
            except (BadVersion, OutcomeUnknown):
                ledger = await self.read(ledger.ledger_id)
            except MetadataError as error:
                unavailable += 1
                if isinstance(error, StoreUnavailable) and unavailable < UNAVAILABLE_MAX:
                    continue  # nothing was written: who writes a ledger shall not stop because the store changes its leader
                raise LedgerError(f"ledger {ledger.ledger_id}: {error}") from error
            else:
                return RegisteredLedger(ledger.ledger_id, metadata, stat.version)
        raise LedgerError(f"ledger {ledger.ledger_id}: metadata changed {UPDATE_ATTEMPTS_MAX} times while it was to be updated")

    async def delete(self, ledger_id: int) -> None:
        """Also parents that are empty then, as Apache does; a ledger that is not there is fine."""
        try:
            await self._store.delete(self.path(ledger_id))
            for parent in self._layout.parents(ROOT, ledger_id):
                await self._store.delete(parent)
        except (NoNode, NotEmpty):
            return
        except MetadataError as error:
            raise LedgerError(f"ledger {ledger_id}: {error}") from error

    async def close(self) -> None:
        await self._ids.close()


def _registered(ledger_id: int, found: Versioned) -> RegisteredLedger:
    try:
        return RegisteredLedger(ledger_id, decode_ledger_metadata(found.value), found.stat.version)
    except MalformedLedgerMetadata as error:
        raise LedgerError(f"ledger {ledger_id}: {error}") from error
