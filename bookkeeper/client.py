"""BookKeeper: creates, opens and deletes ledgers; the composition of registry, writers, recovery and readers.

Satisfies `bookkeeper.ledgers.LedgerStore`. The bookies are those in `bookies` at the time of each call.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from bookkeeper.ledger_end.ledger_recovery import recover_ledger
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment, master_key
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import DEFAULT_QUORUMS, LedgerError, LedgerReader, LedgerWriter, NoSuchEntry, Quorums
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.quarantine import Quarantine
from bookkeeper.placement.rack_placement import Placement
from bookkeeper.ports import BookieClient
from bookkeeper.read.open_ledger import OpenLedger
from bookkeeper.read.reader import EntryReader, ReadPolicy
from bookkeeper.read.scattered_reads import pick
from bookkeeper.repair.underreplication.made_without import KEY, AwayBookies
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write.counted_adds import AddRules
from bookkeeper.write.ensemble_change import WriterEnsembles
from bookkeeper.write.writer import BookieLedgerWriter
from metadata.store import MetadataError, MetadataStore
from ports.logs import line
from ports.rng import Rng
from wire.run import EntryRun

_log = logging.getLogger(__name__)


class BookKeeper:
    """The ledgers of one cluster. `initialise` first, `close` last; the makers of writers close them.

    `bookies` iterates over bookies that take new entries, and gives every one it knows: a mapping, or `NetworkBookies`.
    `placement` overrides the settings.
    """

    def __init__(
        self,
        bookies: Mapping[str, BookieClient],
        store: MetadataStore,
        settings: BookKeeperSettings,
        rng: Rng,
        placement: Placement | None = None,
    ) -> None:
        self._bookies, self._settings, self._rng = bookies, settings, rng
        self._racks = settings.racks_of(store)
        self._weights = settings.weights_of(bookies)
        chosen = placement or settings.placement(self._racks, rng, self._weights)
        groups = (lambda: racks.groups) if (racks := self._racks) is not None else dict[str, frozenset[str]]
        quarantine = Quarantine(settings.quarantine_rule, rng)
        self._candidates = Candidates(bookies, chosen, quarantine, settings.isolation, groups)
        self._registry = LedgerRegistry(store, rng)
        self._away = AwayBookies(store)
        self._password = settings.managed_ledger_password.encode()
        self._master_key = master_key(self._password)
        self._rules = AddRules(
            settings.bookkeeper_delay_ensemble_change,
            settings.add_timeout_seconds,
            settings.bookkeeper_explicit_lac_interval_in_mills / 1000,
        )
        self._read_policy = ReadPolicy(
            None,
            settings.bookkeeper_client_speculative_read_timeout_in_millis / 1000,
            settings.bookkeeper_client_reorder_read_sequence_enabled,
            settings.managed_ledger_read_entry_timeout_seconds,
        )
        """Shared by all ledgers without a bookie that is asked first."""

    async def initialise(self) -> None:
        """Make or check the layout of the metadata; learn where bookies are. LedgerError."""
        await self._registry.initialise()
        if self._racks is not None:
            try:
                await self._racks.open()
            except MetadataError as error:
                raise LedgerError(f"racks of bookies: {error}") from error
        if self._weights is not None:
            self._weights.open()

    async def check_bookies(self) -> None:
        """LedgerError when there are too few bookies for a ledger, also with one that is away."""
        await self._new_ensemble(self._quorums(DEFAULT_QUORUMS), {})

    async def close(self) -> None:
        if self._weights is not None:
            await self._weights.close()
        if self._racks is not None:
            await self._racks.close()
        await self._registry.close()

    async def create(self, custom_metadata: Mapping[str, bytes], quorums: Quorums = DEFAULT_QUORUMS) -> LedgerWriter:
        ledger = await self._registry.create(await self._new_metadata(custom_metadata, quorums))
        reader = self._reader(ledger)
        ensembles = WriterEnsembles(self._candidates, self._registry, ledger, reader)
        return BookieLedgerWriter(
            self._registry, ensembles, self._bookies, reader, self._master_key, self._rules, on_closed=self._away.mark
        )

    async def open(self, ledger_id: int) -> LedgerReader:
        ledger = await self._registry.read(ledger_id)
        self._check_password(ledger)
        if ledger.metadata.state != LedgerState.CLOSED:
            ledger = await recover_ledger(ledger, self._registry, self._bookies, self._candidates, self._master_key)
            await self._away.mark(ledger)
        return ClosedLedger(ledger, self._reader(ledger))

    async def follow(self, ledger_id: int) -> OpenLedger:
        """Open without recovery: its writer, if it has one, goes on. NoSuchLedger."""
        ledger = await self._registry.read(ledger_id)
        self._check_password(ledger)
        reread = partial(self._metadata_of, ledger_id)
        return OpenLedger(ledger_id, ledger.metadata, self._bookies, self._reader(ledger), reread)

    async def delete(self, ledger_id: int) -> None:
        await self._registry.delete(ledger_id)

    async def pick(self, wanted: Sequence[tuple[LedgerReader | LedgerWriter, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        """See `ScatteredReads.pick`."""
        readers = [
            (ledger.entries, entry_ids) for ledger, entry_ids in wanted if isinstance(ledger, ClosedLedger | BookieLedgerWriter)
        ]
        return await pick(readers, self._bookies, bytes_max, self._settings.managed_ledger_read_entry_timeout_seconds)

    async def _new_metadata(self, custom_metadata: Mapping[str, bytes], quorums: Quorums) -> LedgerMetadata:
        settings = self._settings
        quorums = self._quorums(quorums)
        bookies, custom_metadata = await self._new_ensemble(quorums, custom_metadata)
        return LedgerMetadata(
            ensemble_size=quorums.ensemble_size,
            write_quorum=quorums.write_quorum,
            ack_quorum=quorums.ack_quorum,
            segments=(Segment(0, bookies),),
            digest_type=settings.digest_type,
            password=self._password,
            custom_metadata=dict(custom_metadata),
            creation_token=self._rng.getrandbits(63),
        )

    def _quorums(self, asked: Quorums) -> Quorums:
        settings = self._settings
        return Quorums(
            asked.ensemble_size or settings.managed_ledger_default_ensemble_size,
            asked.write_quorum or settings.managed_ledger_default_write_quorum,
            asked.ack_quorum or settings.managed_ledger_default_ack_quorum,
        )

    async def _new_ensemble(
        self, quorums: Quorums, custom_metadata: Mapping[str, bytes]
    ) -> tuple[tuple[str, ...], Mapping[str, bytes]]:
        """With bookies that are away where there are too few, and then it stands in the custom metadata. LedgerError."""
        here = list(self._bookies)
        size, write_quorum = quorums.ensemble_size, quorums.write_quorum
        if len(here) >= size:
            return self._candidates.ensemble(size, write_quorum, custom_metadata), custom_metadata
        try:
            away = await self._away.names(here)
        except MetadataError as error:
            raise LedgerError(f"a ledger needs {size} bookies, and there are {len(here)}; who is away: {error}") from error
        bookies = self._candidates.ensemble_with(away, size, write_quorum, quorums.ack_quorum, custom_metadata)
        names = ",".join(name for name in bookies if name not in here)
        _log.warning(line("ledger created although a bookie is away", away=names, ensemble=",".join(bookies)))
        return bookies, {**custom_metadata, KEY: names.encode()}

    def _reader(self, ledger: RegisteredLedger) -> EntryReader:
        size = ledger.metadata.ensemble_size
        policy = self._read_policy
        if self._settings.bookkeeper_enable_sticky_reads and size > 1:
            policy = replace(policy, sticky_index=int(self._rng.random() * size))
        return EntryReader(ledger.ledger_id, ledger.metadata, self._bookies, policy, self._candidates, self._metadata_of)

    async def _metadata_of(self, ledger_id: int) -> LedgerMetadata:
        return (await self._registry.read(ledger_id)).metadata

    def _check_password(self, ledger: RegisteredLedger) -> None:
        if ledger.metadata.password != self._password:
            raise LedgerError(f"ledger {ledger.ledger_id}: its password is not managedLedgerPassword")


class ClosedLedger:
    """Satisfies `bookkeeper.ledgers.LedgerReader`. `entries` reads them."""

    def __init__(self, ledger: RegisteredLedger, reader: EntryReader) -> None:
        self.ledger_id = ledger.ledger_id
        self.last_entry_id = ledger.metadata.last_entry_id
        self.length_bytes = ledger.metadata.length_bytes
        self.entries = reader

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        if not 0 <= first_entry_id <= self.last_entry_id:
            raise NoSuchEntry(f"ledger {self.ledger_id} entry {first_entry_id}: it ends at {self.last_entry_id}")
        return await self.entries.read(first_entry_id, min(count_max, self.last_entry_id + 1 - first_entry_id), bytes_max)
