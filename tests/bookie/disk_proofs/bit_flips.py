"""Rounds of damage to the files of a bookie: a copy, some bits changed at a random place, a start, and everything asked.

Owns what counts as wrong: bytes that are another's with a digest that fits, "no such entry" of what was acknowledged, an add
to a ledger that was fenced. An error of the bookie, a digest that does not fit, and a refused start are detections.
"""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bookie.bookie import Bookie
from bookie.errors import BookieStartError
from bookie.settings import BookieSettings
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.kernels.entries import first_damaged
from wire.run import EntryRun

LEDGERS, COUNT, SIZE = (1, 2, 3), 60, 700
FENCED = 3
FLUSHED = 20
"""Entries of each ledger that are in entry logs; the rest is in the journal alone."""
SECTOR_BYTES = 512
PADDING_SHARE = 0.1
DENIALS = (BookieCode.ENOENTRY, BookieCode.ENOLEDGER)


def settings_in(directory: Path) -> BookieSettings:
    return BookieSettings(
        (f"{directory}/journal",),
        (f"{directory}/ledgers",),
        journal_max_size_mb=1,
        journal_pre_alloc_size_mb=1,
        log_size_limit=30_000,
        db_storage_direct_io_entry_logger=False,
        local_scrub_rate_limit=0,
    )


@asynccontextmanager
async def bookie_in(directory: Path) -> AsyncIterator[Bookie]:
    """Bookie in the directory, not started."""
    disk = RealDisk()
    bookie = Bookie(disk, settings_in(directory), RealClock(), RealRng())
    try:
        yield bookie
    finally:
        await bookie.stop()
        disk.close()


def sent(ledger_id: int, entry_id: int) -> EntryRun:
    return sealed(ledger_id, entry_id, 1, SIZE, fill=ledger_id)


async def make(directory: Path) -> None:
    """The files of a bookie that was killed: several entry logs, and a journal with more."""
    whole = directory.with_name("whole")
    async with bookie_in(whole) as bookie:
        await bookie.start()
        for entry_id in range(COUNT):
            for ledger_id in LEDGERS:
                await bookie.add(sent(ledger_id, entry_id), KEY)
            if entry_id < FLUSHED and entry_id % 10 == 9:
                await bookie.flush()
        await bookie.fence(FENCED, KEY)
        await bookie.add(sent(1, COUNT), KEY)  # the last frame, which nothing follows
        shutil.copytree(whole, directory)


class Damaged(NamedTuple):
    """Damage that was done to a file."""

    file: str
    how: str
    offset: int


def damage(directory: Path, kind: str, chance: random.Random) -> Damaged:
    """Some bytes of a file of that kind ("*.log") are others."""
    contents = {path: path.read_bytes() for path in sorted(directory.rglob(kind)) if path.is_file()}
    path = chance.choices(list(contents), [len(data.rstrip(b"\0")) for data in contents.values()])[0]
    data = bytearray(contents[path])
    offset = _place(data, chance)
    how = chance.choice(("bit", "byte", "zeros", "noise"))
    begin = offset - offset % SECTOR_BYTES
    before = bytes(data)
    while bytes(data) == before:
        match how:
            case "bit":
                data[offset] ^= 1 << chance.randrange(8)
            case "byte":
                data[offset] = chance.randrange(256)
            case "zeros" if any(data[begin : begin + SECTOR_BYTES]):
                data[begin : begin + SECTOR_BYTES] = bytes(len(data[begin : begin + SECTOR_BYTES]))
            case _:
                data[begin : begin + SECTOR_BYTES] = chance.randbytes(len(data[begin : begin + SECTOR_BYTES]))
    path.write_bytes(data)
    return Damaged(path.name, how, offset)


def _place(data: bytearray, chance: random.Random) -> int:
    """Mostly one that is not padding."""
    used = len(bytes(data).rstrip(b"\0"))
    anywhere = chance.random() < PADDING_SHARE
    while True:
        offset = chance.randrange(used)
        if data[offset] or anywhere:
            return offset


class Served(AssertionError):
    """Something damaged was served, or something acknowledged was denied."""


@dataclass(slots=True)
class Rounds:
    """Rounds of damage to files of one kind."""

    directory: Path
    chance: random.Random

    async def run(self, kind: str, count: int) -> Counter[str]:
        """Run the rounds; the result of each: "refused to start", "detected", "harmless", "torn end". Served.

        A torn end: the last frame cannot be told from one that was never whole (docs/adr/0008); other replicas have it.
        """
        found: Counter[str] = Counter()
        for _ in range(count):
            found[await self._round(kind)] += 1
        return found

    async def _round(self, kind: str) -> str:
        copy = self.directory.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.directory, copy)
        done = damage(copy, kind, self.chance)
        async with bookie_in(copy) as bookie:
            try:
                await bookie.start()
            except BookieStartError as error:
                _need(str(copy) in str(error), f"{done}: {error} names no file")
                return "refused to start"
            return await _ask(bookie, done)


async def _ask(bookie: Bookie, done: Damaged) -> str:
    outcomes = {await _read(bookie, ledger_id, entry_id, done) for ledger_id in LEDGERS for entry_id in range(COUNT)}
    await _ask_for_ends(bookie, done)
    await _ask_for_fence(bookie, done)
    if _may_be_torn(done) and await bookie.last_entry_id(1) < COUNT:
        return "torn end"
    return "detected" if "detected" in outcomes else "harmless"


def _may_be_torn(done: Damaged) -> bool:
    return done.file.endswith(".journal")


async def _read(bookie: Bookie, ledger_id: int, entry_id: int, done: Damaged) -> str:
    try:
        run = await bookie.read(ledger_id, entry_id, 1, 1 << 20)
    except BookieError as error:
        if error.code in DENIALS:
            raise Served(f"{done}: {error}") from error
        return "detected"
    if first_damaged(run) >= 0:
        return "detected"  # by whoever reads it
    if entries_of(run) != entries_of(sent(ledger_id, entry_id)):
        raise Served(f"{done}: ledger {ledger_id} entry {entry_id} is another")
    return "right"


async def _ask_for_ends(bookie: Bookie, done: Damaged) -> None:
    """A recovery would close the ledger there."""
    for ledger_id in LEDGERS:
        try:
            last = await bookie.last_entry_id(ledger_id)
        except BookieError as error:
            _need(error.code not in DENIALS, f"{done}: {error}")
        else:
            wanted = COUNT if ledger_id == 1 and not _may_be_torn(done) else COUNT - 1
            _need(last >= wanted, f"{done}: ledger {ledger_id} ends at {last}")


async def _ask_for_fence(bookie: Bookie, done: Damaged) -> None:
    try:
        await bookie.add(sent(FENCED, COUNT + 1), KEY)
    except BookieError as error:
        _need(error.code is BookieCode.EFENCED, f"{done}: {error}")
    else:
        raise Served(f"{done}: an add to a ledger that was fenced")


def _need(is_so: bool, else_: str) -> None:
    if not is_so:
        raise Served(else_)


class GoodCopies:
    """Other replicas, as the scrub knows them: they have everything."""

    async def fetch(self, ledger_id: int, first_entry_id: int, last_entry_id: int) -> Iterable[EntryRun]:
        return [sent(ledger_id, entry_id) for entry_id in range(first_entry_id, last_entry_id + 1)]

    async def sound(self, run: EntryRun) -> Iterable[EntryRun]:
        return []


async def heal(directory: Path, chance: random.Random) -> bool:
    """Damage to an entry log, and a scrub with replicas; whether it was at a block. Served unless all is right after it."""
    copy = directory.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    done = damage(copy, "*.log", chance)
    async with bookie_in(copy) as bookie:
        await bookie.start()
        bookie.scrub.replicas = GoodCopies()
        assert await bookie.scrub.run_round() == [], done
        repaired = bookie.scrub.counts.entries_repaired
    async with bookie_in(copy) as bookie:  # what it wrote is durable
        await bookie.start()
        for ledger_id in LEDGERS:
            for entry_id in range(COUNT):
                if await _read(bookie, ledger_id, entry_id, done) != "right":
                    raise Served(f"{done}: ledger {ledger_id} entry {entry_id} is not healed")
    return repaired > 0


def on_files(directory: Path, seed: int) -> Rounds:
    """Made once, damaged in copies."""
    asyncio.run(make(directory / "files"))
    return Rounds(directory / "files", random.Random(seed))
