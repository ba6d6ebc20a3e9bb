"""RepairClient: the parts of a cluster that every repair needs: ledger metadata, bookies, marks, and candidates for copies.

The composition only; `interpulse autorecovery`, a bookie with autorecovery in it, and the shell each make one.
"""

from collections.abc import Mapping

from bookkeeper.ledger_metadata.layouts import LAYOUTS
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.quarantine import Quarantine, QuarantineRule
from bookkeeper.placement.rack_data import RackData
from bookkeeper.placement.rack_placement import SpreadPlacement
from bookkeeper.ports import BookieClient
from bookkeeper.repair.settings import RepairSettings
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from metadata.store import MetadataError, MetadataStore
from ports.clock import Clock
from ports.rng import Rng

TIMEOUT_SECONDS = 10.0
"""Time that a bookie may leave a request without an answer."""
QUARANTINE = QuarantineRule(errors_max=3, interval_seconds=60.0, quarantine_seconds=60.0)
"""A bookie that refuses copies is left alone for a while, as long as there are others."""


class RepairClient:
    """`open` first, `close` last; the caller that opened the store closes it. `owner`: the name in locks and votes.

    `bookies`: the bookies of this process, or a client of those across the network, which is opened and closed too; None:
    such a client without TLS. Iterating gives those that take entries.
    """

    def __init__(
        self,
        store: MetadataStore,
        settings: RepairSettings,
        clock: Clock,
        rng: Rng,
        owner: str,
        bookies: Mapping[str, BookieClient] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.store, self.settings, self.clock, self.rng, self.owner = store, settings, clock, rng, owner
        self.timeout_seconds = timeout_seconds
        self.registry = LedgerRegistry(store, rng, LAYOUTS)
        keeps_time = settings.store_system_time_as_ledger_underreplicated_mark_time
        self.marks = UnderreplicationStore(store, clock, owner, keeps_time=keeps_time)
        self.bookies = bookies = NetworkBookies(store, timeout_seconds) if bookies is None else bookies
        self._network = bookies if isinstance(bookies, NetworkBookies) else None
        self.racks = RackData(store)
        placement = SpreadPlacement(
            self.racks.place_of,
            settings.min_num_racks_per_write_quorum,
            rng,
            is_enforced=settings.enforce_min_num_racks_per_write_quorum,
        )
        self.candidates = Candidates(self.bookies, placement, Quarantine(QUARANTINE, rng))

    async def open(self) -> None:
        """Learn the cluster's layout, its bookies and their racks. LedgerError, and it is closed."""
        try:
            await self.registry.initialise()
            await self.marks.initialise()
            await self.racks.open()
            if self._network is not None:
                await self._network.open()
        except LedgerError:
            await self.close()
            raise
        except MetadataError as error:
            await self.close()
            raise LedgerError(f"the cluster's metadata: {error}") from error

    async def close(self) -> None:
        """Closing twice is fine."""
        if self._network is not None:
            await self._network.close()
        await self.racks.close()
        await self.registry.close()
