"""Surroundings: parts that all managed ledgers of a process share. Owns nothing itself."""

from dataclasses import dataclass, field

from bookkeeper.ledgers import LedgerStore
from metadata.store import MetadataStore
from ports.clock import Clock

from .cache.entry_cache import EntryCache
from .cursor.cursor_saves import CursorSaves
from .cursor.holes.segment_cache import HoleCache
from .meters import SharedMeters
from .settings import MEGABYTE, ManagedLedgerSettings
from .skipping import Skipping


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Handed to each of them."""

    ledgers: LedgerStore
    store: MetadataStore
    settings: ManagedLedgerSettings
    clock: Clock
    cache: EntryCache
    holes: HoleCache = field(init=False)
    saves: CursorSaves = field(default_factory=CursorSaves, init=False)
    skipping: Skipping = field(init=False)
    meters: SharedMeters = field(default_factory=SharedMeters, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "skipping", Skipping(self.settings))
        object.__setattr__(self, "holes", HoleCache(self.settings.managed_cursor_hole_cache_size_mb * MEGABYTE))
