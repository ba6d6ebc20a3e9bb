"""What all managed ledgers of a process share. Owns nothing itself."""

from dataclasses import dataclass

from bookkeeper.ledgers import LedgerStore
from metadata.store import MetadataStore
from ports.clock import Clock

from .cache.entry_cache import EntryCache
from .settings import ManagedLedgerSettings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Handed to each of them."""

    ledgers: LedgerStore
    store: MetadataStore
    settings: ManagedLedgerSettings
    clock: Clock
    cache: EntryCache
