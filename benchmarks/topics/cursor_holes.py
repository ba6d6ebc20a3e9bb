"""Holes of one cursor on real storage: `.venv/bin/python -m benchmarks.topics.cursor_holes [--entries N]`.

A process of its own appends N entries to one ledger, acknowledges every second one, then 1,000 more, each time waiting until
that is stored (what a receipt waits for), and is killed with SIGKILL. A second one recovers, finds the first entry to deliver,
and looks for acknowledged entries that would be delivered again. Beside it: what the single-entry format (PositionInfo) writes.
Then rates of acknowledgement, holes that do not compress, and ten times as many entries with few holes. `aim` is issue 4's.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import compress
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from cli.configuration.loading import CONF, Configuration, load_configuration
from cli.standalone.server import Standalone
from managed_ledger.contract import EARLIEST
from managed_ledger.cursor.cursor_driver import DurableCursor
from managed_ledger.cursor.state import CursorState, encode_position
from managed_ledger.factory import ManagedLedgerFactory
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from metadata.embedded import EmbeddedStore
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from wire.run import HEADER_BYTES_CRC32C, EntryBatch

NAME = "public/default/persistent/holes"
MORE = 1000
BATCH = 5000
APACHE_RANGES = 10_000
SETTINGS = ["managedLedgerMaxEntriesPerLedger=2000000000", "managedLedgerMaxSizePerLedgerMbytes=1000000",
            "brokerServicePort=0"]  # fmt: skip


def configuration() -> Configuration:
    return load_configuration([("standalone.conf", (CONF / "standalone.conf").read_text())], SETTINGS)


@asynccontextmanager
async def storage(directory: Path) -> AsyncIterator[ManagedLedgerFactory]:
    """Metadata and bookie of a standalone; the factory of its managed ledgers."""
    clock = RealClock()
    store = await EmbeddedStore.open(str(directory / "metadata"), clock, lambda reason: sys.exit(reason))
    standalone = Standalone(configuration(), str(directory), RealDisk(), clock, RealRng(), store)
    await standalone.start()
    yield standalone.managed_ledgers
    await standalone.stop()
    await store.close()


async def opened(factory: ManagedLedgerFactory) -> StoredManagedLedger:
    ledger = await factory.open(NAME)
    assert isinstance(ledger, StoredManagedLedger)
    return ledger


async def cursor_of(ledger: StoredManagedLedger, name: str) -> DurableCursor:
    cursor = await ledger.open_cursor(name, EARLIEST)
    assert isinstance(cursor, DurableCursor)
    return cursor


async def append(ledger: StoredManagedLedger, entries: int) -> None:
    room = bytes(HEADER_BYTES_CRC32C + 1)
    waiting: list[asyncio.Future[Any]] = []
    for first in range(0, entries, BATCH):
        count = min(BATCH, entries - first)
        offsets = array("I", range(0, len(room) * count + 1, len(room)))
        waiting.append(ledger.append(EntryBatch(bytearray(room * count), offsets, HEADER_BYTES_CRC32C, count)))
        if len(waiting) > 20:
            await waiting.pop(0)
    await asyncio.gather(*waiting)


def more(entries: int) -> BitMap:
    """A thousand of those that are not acknowledged yet, anywhere but at the very first."""
    return BitMap(2 * place for place in random.Random(1).sample(range(1, entries // 2), MORE))


async def write(directory: Path, entries: int) -> None:
    async with storage(directory) as factory:
        ledger = await opened(factory)
        cursor = await cursor_of(ledger, "sub")
        began = time.perf_counter()
        await append(ledger, entries)
        say("appended", seconds=since(began))
        ledger_id = ledger.last_confirmed.ledger_id
        rss = rss_bytes()
        cursor.acknowledge_entries(ledger_id, BitMap(range(1, entries, 2)))
        await flushed("every second one acknowledged", cursor)
        say("memory", aim="8 MB", rss_growth=rss_bytes() - rss, holes_kept=ledger._around.holes.size_bytes)
        side_by_side(cursor, entries)
        cursor.acknowledge_entries(ledger_id, more(entries))
        await flushed(f"{MORE} more, anywhere", cursor, "256 KB")
        side_by_side(cursor, entries)
        say("answered")
        await asyncio.sleep(3600)  # to be killed


async def flushed(what: str, cursor: DurableCursor, aim: str = "none") -> None:
    began = time.perf_counter()
    await cursor.stored()
    stats = cursor.hole_stats()
    say(what, aim=aim, seconds=since(began), bytes_written=stats.saved_bytes, entries_written=stats.saved_entries,
        segments=stats.segments, segmented=stats.is_segmented)  # fmt: skip


def side_by_side(cursor: DurableCursor, entries: int) -> None:
    """The same place in one PositionInfo, uncut, and what Apache's limit would drop of it."""
    machine = cursor.acknowledgements
    began = time.perf_counter()
    entry, dropped = encode_position(CursorState(machine.mark_delete, machine.holes.copy()), as_long_array=True)
    ranges = machine.holes.range_count()
    say("single entry", seconds=since(began), bytes_written=len(entry), not_in_4_mb=dropped,
        dropped_ranges_at_apaches_limit=max(ranges - APACHE_RANGES, 0))  # fmt: skip


async def recover(directory: Path, entries: int) -> None:
    async with storage(directory) as factory:
        began = time.perf_counter()
        ledger = await opened(factory)
        cursor = await cursor_of(ledger, "sub")
        run = await ledger.read(cursor.first_unacknowledged(), 100, 1 << 20)
        assert run is not None, "there are entries"
        await cursor.load_acknowledged(run.ledger_id, run.first_entry_id, run.last_entry_id)
        first = next(entry for entry in range(run.first_entry_id, run.last_entry_id + 1)
                     if entry not in cursor.acknowledged_in(run.ledger_id))  # fmt: skip
        stats = cursor.hole_stats()
        say("recovered to first delivery", aim="1 s", seconds=since(began), first=first,
            resident=f"{stats.resident_segments} of {stats.segments}")  # fmt: skip
        expected = BitMap(range(1, entries, 2)) | more(entries)
        began = time.perf_counter()
        await cursor.load_acknowledged(run.ledger_id, 0, entries - 1)
        found = cursor.acknowledged_in(run.ledger_id)
        say("all looked at", aim="0 delivered_again", seconds=since(began), delivered_again=len(expected - found),
            lost=len(found - expected),
            backlog_right=cursor.backlog_entries() == entries - len(expected))  # fmt: skip
        cursor.acknowledge_entries(run.ledger_id, BitMap([2]))
        await flushed("first save after recovery (to a new ledger)", cursor)
        for pattern in PATTERNS:
            await acknowledge_rates(factory, entries, pattern)


async def acknowledge_rates(factory: ManagedLedgerFactory, entries: int, pattern: str) -> None:
    """On a cursor without holes, on one with a million, and on one whose million is on disk only, as after a restart.

    Best of five, in turn. By processor time too, as the machine may have other work.
    """
    ledger = await opened(factory)
    calls = PATTERNS[pattern](min(entries // 4, 100_000))
    rates: dict[str, list[tuple[float, float]]] = {"none": [], "million": [], "million_on_disk": []}
    for turn in range(5):
        for kind in rates:
            cursor = await cursor_of(ledger, f"{kind}-{turn}")
            if kind != "none":
                await with_a_million(ledger, cursor, entries, on_disk=kind == "million_on_disk")
            rates[kind].append(await rate_of(cursor, ledger.last_confirmed.ledger_id, calls, pattern))
            await ledger.delete_cursor(cursor.name)
    wall = {kind: max(each for each, _ in found) for kind, found in rates.items()}
    busy = {kind: max(each for _, each in found) for kind, found in rates.items()}
    say("acknowledgements per second", aim="0.8 of none", pattern=pattern, **{k: round(v) for k, v in wall.items()},
        ratio=round(wall["million"] / wall["none"], 3), ratio_on_disk=round(wall["million_on_disk"] / wall["none"], 3),
        ratio_of_processor_time=round(busy["million"] / busy["none"], 3),
        ratio_of_processor_time_on_disk=round(busy["million_on_disk"] / busy["none"], 3))  # fmt: skip


async def with_a_million(ledger: StoredManagedLedger, cursor: DurableCursor, entries: int, *, on_disk: bool) -> None:
    first = entries - min(2_000_000, entries // 2)
    cursor.acknowledge_entries(ledger.last_confirmed.ledger_id, BitMap(range(first, entries, 2)))
    await cursor.stored()
    if on_disk:
        cache = ledger._around.holes
        kept, cache._bytes_max = cache._bytes_max, 0
        cache.shrink()
        cache._bytes_max = kept
        await cursor.load_acknowledged(ledger.last_confirmed.ledger_id, 0, 0)  # what a restart loads


async def rate_of(cursor: DurableCursor, ledger_id: int, calls: list[BitMap], pattern: str) -> tuple[float, float]:
    """Entries per second, and per second of processor time."""
    began, busy = time.perf_counter(), time.process_time()
    for number, entry_ids in enumerate(calls, 1):
        cursor.acknowledge_entries(ledger_id, entry_ids)
        if pattern == "with receipts":
            await cursor.stored()
        elif number % 1000 == 0:
            await asyncio.sleep(0)
    await cursor.stored()
    count = sum(map(len, calls))
    return count / (time.perf_counter() - began), count / (time.process_time() - busy)


def shuffled(entries: int) -> list[BitMap]:
    """One at a time, as consumers of a shared subscription do: of each thousand in any order."""
    rng = random.Random(3)
    return [BitMap([each]) for at in range(0, entries, 1000) for each in rng.sample(range(at, at + 1000), 1000)]


PATTERNS: dict[str, Callable[[int], list[BitMap]]] = {
    "one by one": lambda entries: [BitMap([at]) for at in range(entries)],
    "100 in a call": lambda entries: [BitMap(range(at, at + 100)) for at in range(0, entries, 100)],
    "shuffled": shuffled,
    "with receipts": lambda entries: [BitMap(range(at, at + 100)) for at in range(0, entries // 2, 100)],
}
"""\"with receipts\": a save after every hundred, each waited for."""


async def scattered(directory: Path, entries: int) -> None:
    """Any half of the entries of one ledger, which does not compress, and 1,000 more of the others, 200 times."""
    async with storage(directory) as factory:
        ledger = await opened(factory)
        await append(ledger, 1)
        cursor = await cursor_of(ledger, "scattered")
        ledger_id = ledger.last_confirmed.ledger_id
        ledger.sequence.confirm(entries, entries)
        rng = random.Random(2)
        bits = int.from_bytes(rng.randbytes(entries // 8), "little")
        digits = format(bits, "b").encode().translate(bytes.maketrans(b"01", bytes([0, 1])))
        cursor.acknowledge_entries(ledger_id, BitMap(compress(range(1, entries), digits)))
        await flushed("any half acknowledged", cursor)
        say("memory", aim="8 MB", holes_kept=ledger._around.holes.size_bytes)
        written = []
        for _ in range(200):
            cursor.acknowledge_entries(ledger_id, BitMap(rng.sample(range(1, entries), 2 * MORE)))
            await cursor.stored()
            written.append(cursor.hole_stats().saved_bytes)
        say(
            f"{MORE} more, 200 times",
            aim="256 KB",
            bytes_written_max=max(written),
            bytes_written_mean=sum(written) // len(written),
        )
        os._exit(0)


async def few_holes(directory: Path, entries: int) -> None:
    """One in a million unacknowledged, over `entries` that are not appended: ledgers of 50,000, as far as the cursor knows."""
    async with storage(directory) as factory:
        ledger = await opened(factory)
        await append(ledger, 1)
        sequence = ledger.sequence
        cursor = await cursor_of(ledger, "few")
        sequence.close_open(1)
        first = ledger.last_confirmed.ledger_id + 1
        for ledger_id in range(first, first + entries // 50_000):
            sequence.open(ledger_id)
            sequence.confirm(50_000, 50_000)
            sequence.close_open(1)
            gone = BitMap([0]) if (ledger_id - first) % 20 == 0 else BitMap()
            cursor.acknowledge_entries(ledger_id, BitMap(range(50_000)) - gone)
        await flushed(f"{entries} entries, one in a million not acknowledged", cursor, "64 KB")
        cursor.acknowledge_entries(first, BitMap([0]))
        await flushed("the first of these acknowledged, and mark-delete moves", cursor, "64 KB")
        other = await cursor_of(ledger, "other")
        for ledger_id in range(first, first + entries // 50_000, 20):
            other.acknowledge_entries(ledger_id, BitMap([25_000]))
        await flushed(f"{entries} entries, one in a million acknowledged", other, "64 KB")
        for ledger_id in range(first, first + entries // 50_000, 2):
            other.acknowledge_entries(ledger_id, BitMap([7]))
        await flushed("1,000 more, each in another ledger", other, "64 KB")
        os._exit(0)


def say(what: str, **figures: Any) -> None:
    print(json.dumps({"what": what, **figures}), flush=True)


def since(began: float) -> float:
    return round(time.perf_counter() - began, 4)


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ROLES: dict[str, Callable[[Path, int], Coroutine[Any, Any, None]]] = {
    "write": write,
    "recover": recover,
    "scattered": scattered,
    "few": few_holes,
}


def lines_of(role: str, directory: Path, entries: int) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "benchmarks.topics.cursor_holes", "--role", role, "--directory", str(directory)]
    with subprocess.Popen([*command, "--entries", str(entries)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line.rstrip(), flush=True)
            yield line, process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--role", choices=ROLES)
    parser.add_argument("--directory", type=Path)
    asked = parser.parse_args()
    if asked.role:
        asked.directory.mkdir(parents=True, exist_ok=True)
        asyncio.run(ROLES[asked.role](asked.directory, asked.entries))
        return
    with tempfile.TemporaryDirectory() as directory:
        for line, process in lines_of("write", Path(directory) / "a", asked.entries):
            if json.loads(line)["what"] == "answered":
                process.send_signal(signal.SIGKILL)
        for _ in lines_of("recover", Path(directory) / "a", asked.entries):
            pass
        for _ in lines_of("scattered", Path(directory) / "c", asked.entries):
            pass
        for _ in lines_of("few", Path(directory) / "b", 10 * asked.entries):
            pass


if __name__ == "__main__":
    main()
