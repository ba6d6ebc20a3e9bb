"""Bookies as processes that lost something: what is damaged or gone comes back from the others, and nothing false is said."""

import asyncio
import shutil
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import master_key
from bookkeeper.ledgers import LedgerError, LedgerUnreadable, LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from ports.rng import RealRng
from tests.bookie.runs import sealed
from tests.clients.bookie_process import BookieProcess
from tests.metadata.conftest import open_on
from wire.bookie.codes import BookieCode
from wire.run import EntryBatch

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

COUNT, BYTES = 200, 200
DAMAGED = 123
REPAIR_OFF = "autoRecoveryDaemonEnabled=false"
"""Setting that leaves all repair to the bookie itself."""
POLL_SECONDS = 0.05
WAIT_SECONDS_MAX = 60.0
LOSS_ALLOWED = ("dataIntegrityChecking=true", "dataIntegrityStampMissingCookies=true")


@asynccontextmanager
async def client_of(servers: str, ensemble: int, write: int, ack: int) -> AsyncIterator[tuple[BookKeeper, NetworkBookies]]:
    store = await open_on(servers)
    bookies = NetworkBookies(store, 10.0)
    ledgers = BookKeeper(bookies, store, BookKeeperSettings(ensemble, write, ack), RealRng())
    try:
        await ledgers.initialise()
        await bookies.open()
        yield ledgers, bookies
    finally:
        await bookies.close()
        await ledgers.close()
        await store.close()


def three_bookies(path: Path, servers: str, *settings: str) -> list[BookieProcess]:
    uri = f"zk+hierarchical://{servers}/ledgers"
    return [BookieProcess(path / f"bookie-{number}", uri, "zkTimeout=2000", REPAIR_OFF, *settings) for number in range(3)]


async def written(ledgers: BookKeeper, count: int = COUNT) -> LedgerWriter:
    writer = await ledgers.create({})
    for first in range(0, count, 10):
        run = sealed(0, first, 10, BYTES)
        await writer.append(EntryBatch(bytearray(run.buffer), run.offsets, run.header_bytes, 10))
    return writer


async def until(bookie: BookieProcess, word: str) -> None:
    """Waits until the word is in the bookie's log."""
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS_MAX
    while word not in bookie.log.read_text():
        assert asyncio.get_running_loop().time() < deadline, f"not in {WAIT_SECONDS_MAX} s: {word}\n{bookie.log.read_text()}"
        await asyncio.sleep(POLL_SECONDS)


def payload(entry_id: int) -> bytes:
    return bytes(sealed(0, entry_id // 10 * 10, 10, BYTES).payload(entry_id // 10 * 10))


class Answers:
    """Answers of one bookie about entries, on a connection of version 2."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, ledger_id: int, entry_id: int, flags: int = 0, key: bytes = b"") -> tuple[int, bytes]:
        """The code, and the payload of the entry."""
        body = struct.pack(">Iqq", 2 << 24 | 2 << 16 | flags, ledger_id, entry_id) + key
        self._writer.write(len(body).to_bytes(4) + body)
        answer = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4)))
        return int.from_bytes(answer[4:8]), answer[24 + 36 :]


@asynccontextmanager
async def answers_of(bookie: BookieProcess) -> AsyncIterator[Answers]:
    reader, writer = await asyncio.open_connection("127.0.0.1", bookie.port)
    try:
        yield Answers(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


def flip_bit(bookie: BookieProcess, entry_id: int) -> None:
    """Flips a bit in the payload of the newest copy of an entry in the bookie's only log."""
    (log,) = (bookie.directory / "ledgers").glob("*.log")
    data = bytearray(log.read_bytes())
    at = data.rindex(struct.pack(">qq", entry_id, entry_id // 10 * 10 - 1))
    data[at + 100] ^= 4
    log.write_bytes(data)


def test_a_flipped_bit_is_found_and_healed_and_without_a_good_replica_never_served(tmp_path: Path, servers: str) -> None:
    bookies = three_bookies(tmp_path, servers, "localScrubInterval=1", "localScrubRateLimit=0")
    damaged = bookies[0]

    async def scenario() -> None:
        async with client_of(servers, 3, 3, 3) as (ledgers, _):
            writer = await written(ledgers)
            await writer.close()
            ledger_id = writer.ledger_id
            assert damaged.stop() == 0  # everything is in the entry log
            flip_bit(damaged, DAMAGED)
            damaged.start()
            await until(damaged, "damage is repaired")
            async with answers_of(damaged) as answers:
                for entry_id in range(COUNT):
                    assert await answers.read(ledger_id, entry_id) == (BookieCode.EOK, payload(entry_id))

            for bookie in bookies:
                assert bookie.stop() == 0
                flip_bit(bookie, DAMAGED)
            for bookie in bookies:
                bookie.start()
            for bookie in bookies:
                await until(bookie, "entries are lost here")
                async with answers_of(bookie) as answers:
                    for entry_id in range(COUNT):
                        expected = (BookieCode.EIO, b"") if entry_id == DAMAGED else (BookieCode.EOK, payload(entry_id))
                        assert await answers.read(ledger_id, entry_id) == expected
            reader = await ledgers.open(ledger_id)
            with pytest.raises(LedgerUnreadable):
                await reader.read(DAMAGED, 1, 1)

    try:
        for bookie in bookies:
            bookie.start()
        asyncio.run(scenario())
    finally:
        for bookie in bookies:
            bookie.kill()


async def watch(bookie: BookieProcess, due: dict[int, range], stop: asyncio.Event) -> dict[int, int]:
    """Asks the bookie for what it should have until told to stop; how often it gave each code. Payloads are checked."""
    codes: dict[int, int] = {}
    async with answers_of(bookie) as answers:
        while not stop.is_set():
            for ledger_id, entries in due.items():
                for entry_id in entries:
                    flags, key = (1, master_key(b"")) if entry_id % 2 else (0, b"")
                    code, found = await answers.read(ledger_id, entry_id, flags, key)
                    codes[code] = codes.get(code, 0) + 1
                    assert code != BookieCode.EOK or found == payload(entry_id)
            await asyncio.sleep(0)
    return codes


def test_a_bookie_whose_directories_were_wiped_gets_everything_back_and_says_nothing_false(
    tmp_path: Path, servers: str
) -> None:
    bookies = three_bookies(tmp_path, servers, *LOSS_ALLOWED)
    wiped = bookies[0]

    async def scenario() -> None:
        due: dict[int, range] = {}
        async with client_of(servers, 3, 3, 2) as (ledgers, _), client_of(servers, 3, 2, 2) as (striped, _):
            for _ in range(3):
                writer = await written(ledgers)
                await writer.close()
                due[writer.ledger_id] = range(COUNT)
            open_one = await written(ledgers)
            due[open_one.ledger_id] = range(COUNT)
            in_turn = await written(striped)
            await in_turn.close()
            wiped.kill()
            shutil.rmtree(wiped.directory / "ledgers")
            shutil.rmtree(wiped.directory / "journal")
            wiped.start()
            assert "entries are lost: ledgers in limbo" in wiped.log.read_text()
            stop = asyncio.Event()
            watching = asyncio.create_task(watch(wiped, due, stop))
            try:
                await until(wiped, "no ledger is in limbo")
            finally:
                stop.set()
                codes = await watching
            assert codes.keys() <= {BookieCode.EOK, BookieCode.EUNKNOWNLEDGERSTATE}, codes
            with pytest.raises(LedgerError):
                await open_one.append(EntryBatch(bytearray(46), sealed(0, 0).offsets, 36, 1))
            for power in ("as it is", "after kill -9"):
                async with answers_of(wiped) as answers:
                    for ledger_id, entries in due.items():
                        for entry_id in entries:
                            assert await answers.read(ledger_id, entry_id) == (BookieCode.EOK, payload(entry_id)), power
                    held = [(await answers.read(in_turn.ledger_id, entry_id))[0] for entry_id in range(COUNT)]
                    assert held.count(BookieCode.EOK) * 3 >= COUNT * 2 - 3
                    assert set(held) == {BookieCode.EOK, BookieCode.ENOENTRY}
                wiped.kill()
                wiped.start()
            bookies[1].kill()
            reader = await striped.open(in_turn.ledger_id)
            at = 0
            while at < COUNT:
                at += (await reader.read(at, COUNT - at, 1 << 20)).count

    try:
        for bookie in bookies:
            bookie.start()
        asyncio.run(scenario())
    finally:
        for bookie in bookies:
            bookie.kill()
