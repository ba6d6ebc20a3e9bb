"""A cluster in memory for tests of repair: bookies that register, die and come back, ledgers, and auto-recoveries."""

import asyncio
from collections.abc import Iterator, Mapping
from random import Random

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import AVAILABLE, READ_ONLY, ledger_path
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.ports import BookieClient
from bookkeeper.repair.auto_recovery import AutoRecovery
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair
from bookkeeper.repair.settings import RepairSettings
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write.quorum_tracker import Quorum
from metadata.memory import MemoryStore, OneSession, SharedTree
from metadata.sessions import Sessions
from tests.bookkeeper.fake_bookies import FakeBookie, FixedClock, batch
from wire.bookie.codes import BookieCode

AWAY = dict.fromkeys(("add", "read", "fence"), BookieCode.ETOOMANYREQUESTS)


LOOK_SECONDS = 0.25


class LoopClock:
    """The loop's time, as a clock."""

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(asyncio.get_running_loop().time() * 1000)


class KnownBookies(Mapping[str, BookieClient]):
    """Iterating gives those that take entries; any can be asked, and one that is down does not answer."""

    def __init__(self, cluster: "RepairWorld") -> None:
        self._cluster = cluster

    def __iter__(self) -> Iterator[str]:
        return iter(self._cluster.writable)

    def __len__(self) -> int:
        return len(self._cluster.writable)

    def __getitem__(self, name: str) -> BookieClient:
        return self._cluster.bookies[name]


class RepairWorld:
    """Bookies `b0:1`, `b1:1`, ...; all are up at first."""

    def __init__(self, count: int, settings: RepairSettings | None = None) -> None:
        self.shared = SharedTree()
        self.settings = settings or RepairSettings()
        self.bookies = {f"b{number}:1": FakeBookie() for number in range(count)}
        self.payloads: dict[int, list[bytes]] = {}
        self._registrations: dict[str, MemoryStore] = {}
        self._started: list[AutoRecovery] = []
        self._clients = 0

    def session(self) -> MemoryStore:
        return MemoryStore(FixedClock(), self.shared, alone=False)

    @property
    def writable(self) -> list[str]:
        return [name for name in self.shared.tree.children(AVAILABLE) if name != "readonly"]

    # Bookies

    async def up(self, *names: str, read_only: bool = False) -> None:
        for name in names or self.bookies:
            await self.down(name)
            session = self._registrations[name] = self.session()
            await session.put(f"{READ_ONLY if read_only else AVAILABLE}/{name}", b"", ephemeral=True)
            self.bookies[name].failures.clear()
            if read_only:
                self.bookies[name].failures["add"] = BookieCode.EREADONLY

    async def down(self, *names: str) -> None:
        for name in names:
            session = self._registrations.pop(name, None)
            if session is not None:
                await session.close()
            self.bookies[name].failures |= AWAY

    async def replace(self, name: str) -> None:
        """A bookie that was never there before."""
        self.bookies[name] = FakeBookie()
        await self.up(name)

    # Ledgers

    def client(self, ensemble: int, write: int, ack: int, digest: str = "CRC32C", password: str = "") -> BookKeeper:
        self._clients += 1
        settings = BookKeeperSettings(ensemble, write, ack, digest, password)
        return BookKeeper(KnownBookies(self), self.session(), settings, Random(self._clients))

    async def open_ledger(
        self, quorum: tuple[int, int, int], count: int, digest: str = "CRC32C", password: str = ""
    ) -> LedgerWriter:
        client = self.client(*quorum, digest, password)
        await client.initialise()
        writer = await client.create({})
        self.payloads[writer.ledger_id] = []
        await self.append(writer, count)
        return writer

    async def append(self, writer: LedgerWriter, count: int) -> None:
        payloads = self.payloads[writer.ledger_id]
        for number in range(len(payloads), len(payloads) + count):
            payloads.append(b"entry %d " % number * (number % 7))
            await writer.append(batch(payloads[-1]))

    async def closed_ledger(self, quorum: tuple[int, int, int], count: int, digest: str = "CRC32C", password: str = "") -> int:
        writer = await self.open_ledger(quorum, count, digest, password)
        await writer.close()
        return writer.ledger_id

    def metadata(self, ledger_id: int) -> LedgerMetadata:
        found = self.shared.tree.get(ledger_path(ledger_id))
        assert found is not None
        return decode_ledger_metadata(found.value)

    def lacks(self, ledger_id: int) -> list[str]:
        """Every copy that is not where the metadata says, or whose bookie is not there, or is not what was written."""
        metadata = self.metadata(ledger_id)
        if metadata.state != LedgerState.CLOSED:
            return ["it is open"]
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        present = {*self.writable, *self.shared.tree.children(READ_ONLY)}
        found = [f"{name} is named" for segment in metadata.segments for name in segment.bookies if name not in present]
        for entry_id in range(metadata.last_entry_id + 1):
            segment = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1]
            for index in quorum.write_set(entry_id):
                ledger = self.bookies[segment.bookies[index]].ledgers.get(ledger_id)
                entry = b"" if ledger is None else ledger.entries.get(entry_id, b"")
                if not entry.endswith(self.payloads[ledger_id][entry_id]) or len(entry) < 32:
                    found.append(f"{entry_id} at {segment.bookies[index]}")
        return found

    def marked(self) -> list[str]:
        """Paths of the marks."""
        paths = ["/ledgers/underreplication/ledgers"]
        for path in paths:
            paths += [f"{path}/{name}" for name in self.shared.tree.children(path)]
        return [path.rpartition("/")[2] for path in paths if "/urL" in path]

    def locks(self) -> list[str]:
        return self.shared.tree.children("/ledgers/underreplication/locks")

    # Repair

    def repair_client(self, owner: str = "me", session: MemoryStore | None = None) -> RepairClient:
        self._clients += 1
        store, rng = session or self.session(), Random(self._clients)
        return RepairClient(store, self.settings, LoopClock(), rng, owner, KnownBookies(self), timeout_seconds=5.0)

    async def repairer(self) -> LedgerRepair:
        client = self.repair_client()
        await client.open()
        return LedgerRepair(client, RepairCounters())

    async def auto_recovery(
        self, owner: str = "me", session: MemoryStore | None = None, sessions: Sessions | None = None
    ) -> AutoRecovery:
        started = AutoRecovery(self.repair_client(owner, session), sessions or OneSession())
        await started.start()
        self._started.append(started)
        return started

    async def close(self) -> None:
        for started in self._started:
            await started.stop()

    async def until_whole(self, *ledger_ids: int) -> None:
        """Nothing is marked, and nothing lacks. Virtual time: a minute of it is no time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 3600
        while self.marked() or any(self.lacks(ledger_id) for ledger_id in ledger_ids):
            assert loop.time() < end, (self.marked(), [self.lacks(ledger_id) for ledger_id in ledger_ids])
            await asyncio.sleep(LOOK_SECONDS)
