"""A ledger from files of a bookie on this machine: what its port would give, whatever is in files and whatever goes wrong."""

import logging
import os
import random
from array import array
from pathlib import Path

import numpy
import pytest

from pipeline.pyspark_pulsar.client.bookies import bookie_reader, local_files
from pipeline.pyspark_pulsar.client.bookies.bookie_connection import BookieConnection
from pipeline.pyspark_pulsar.client.bookies.bookie_reader import BookieReader, NeedsBroker
from pipeline.pyspark_pulsar.client.bookies.local_files import LocalFiles, Offer
from pipeline.pyspark_pulsar.client.connection import Lost
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.ledger_places import Ensemble, LedgerPlaces
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.positions import LedgerRange
from tests.bookie.real_bookie import RealBookie
from tests.pipeline.scripted_bookie import ScriptedBookie, stored
from tests.pipeline.sections import batch, single
from wire.run import HEADER_BYTES_CRC32C, EntryRun

COUNT = 400
ENTRIES = {each: stored(7, each, batch([single(f"{each}:{half}".encode()) for half in "ab"], each)) for each in range(COUNT)}
WANTED = [f"{each}:{half}" for each in range(COUNT) for half in "ab"]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookie_reader, "_WINDOW_ENTRIES_MAX", 50)


def run_of(first: int, end: int) -> EntryRun:
    found = [ENTRIES[each] for each in range(first, end)]
    offsets = array("I", [0])
    for each in found:
        offsets.append(offsets[-1] + len(each))
    return EntryRun(7, first, b"".join(found), offsets, HEADER_BYTES_CRC32C)


def filled(bookie: RealBookie, *, flush: bool = True) -> None:
    for first in range(0, COUNT, 100):
        bookie.add([run_of(first, first + 50), run_of(first + 50, first + 100)], flush=flush)


def reader(*bookies: str, ranges: tuple[tuple[int, int], ...] = ((0, COUNT),), quorum: int = 1) -> BookieReader:
    of = LedgerPlaces(7, quorum, "CRC32C", (Ensemble(0, bookies),))
    access = Access("pulsar://unused", "http://unused", timeout_seconds=20)
    return BookieReader(of, [LedgerRange(7, *each, 1000, of) for each in ranges], access, True)


def texts(found: BookieReader) -> list[str]:
    return [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()]


def test_entries_in_files_are_not_read_over_the_port(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as bookie:
        filled(bookie)
        assert texts(reader(bookie.address)) == WANTED
        assert bookie.listener.stats.local_entries == COUNT
        assert bookie.listener.stats.reads.succeeded.count == 0
        some = ((3, 5), (70, 71), (130, 260))
        wanted = [text for first, end in some for text in WANTED[2 * first : 2 * end]]
        assert texts(reader(bookie.address, ranges=some)) == wanted


def test_a_bookie_that_hands_over_no_files_is_read_over_its_port(tmp_path: Path) -> None:
    with RealBookie(tmp_path, hands_over_files=False) as bookie:
        filled(bookie)
        assert texts(reader(bookie.address)) == WANTED
        assert bookie.listener.stats.reads.succeeded.count == COUNT


@pytest.mark.parametrize("flushed", [0, 100, 130, 399])
def test_entries_not_yet_in_files_are_read_over_the_port(tmp_path: Path, flushed: int) -> None:
    with RealBookie(tmp_path) as bookie:
        if flushed:
            bookie.add([run_of(0, flushed)])
        bookie.add([run_of(flushed, COUNT)], flush=False)
        assert texts(reader(bookie.address)) == WANTED
        assert bookie.listener.stats.local_entries == flushed
        assert bookie.listener.stats.reads.succeeded.count == COUNT - flushed


def test_files_that_cannot_be_used_any_more_are_left_for_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with RealBookie(tmp_path) as bookie:
        filled(bookie)
        found = iter(reader(bookie.address))
        next(found)
        bookie.call(bookie.close_local_reads)
        with caplog.at_level(logging.INFO):
            assert sum(rows.message_count for rows in found) >= 2 * (COUNT - 100)
        assert "its port is used instead" in caplog.text
        assert bookie.listener.stats.reads.succeeded.count > 0
        assert texts(reader(bookie.address)) == WANTED  # whose offer leads nowhere


def test_a_file_that_fails_is_left_for_the_port(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as bookie:
        filled(bookie)
        files = LocalFiles(Offer(*bookie.local_reads.told), bookie.address, 20)
        wanted = numpy.arange(10)
        files.ask(7, wanted)
        assert files.answers(wanted, 1 << 20).is_there.all()
        for each in (tmp_path / "ledgers").glob("**/*.log"):
            os.truncate(each, 4200)
        files.ask(7, wanted)
        with pytest.raises(Lost, match="shorter than it was told"):
            files.answers(wanted, 1 << 20)
        files.close()


def test_damage_in_a_file_is_found_and_another_bookie_has_it_sound(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as bookie, ScriptedBookie({(7, each): data for each, data in ENTRIES.items()}) as other:
        filled(bookie)
        [first, *_] = sorted((tmp_path / "ledgers").glob("**/*.log"))
        data = bytearray(first.read_bytes())
        at = data.index(ENTRIES[3]) + len(ENTRIES[3]) - 1
        data[at] ^= 1
        with first.open("r+b") as file:
            file.seek(at)
            file.write(data[at : at + 1])
        assert texts(reader(bookie.address, other.address, quorum=2)) == WANTED
        assert set(other.asked) >= {3}
        with pytest.raises(NeedsBroker, match="7:3"):
            texts(reader(bookie.address))


@pytest.mark.parametrize("seed", range(8))
def test_both_ways_give_the_same(tmp_path: Path, seed: int) -> None:
    """Stripes, gaps, sparse wishes, any of it flushed or not."""
    rng = random.Random(seed)
    with RealBookie(tmp_path) as bookie:
        held = sorted(rng.sample(range(COUNT), rng.randint(1, COUNT))) if rng.random() < 0.5 else list(range(0, COUNT, 3))
        for each in held:
            bookie.add([run_of(each, each + 1)], flush=rng.random() < 0.05)
        wanted = numpy.array(sorted(rng.sample(range(COUNT), rng.randint(1, COUNT))))
        files = LocalFiles(Offer(*bookie.local_reads.told), bookie.address, 20)
        files.ask(7, wanted)
        found = files.answers(wanted, 1 << 24)
        port = BookieConnection(bookie.address, 20)
        port.ask(7, wanted)
        expected = port.answers(wanted, 1 << 20, 1 << 24)
        assert not (found.is_there & ~expected.is_there).any()
        for row in found.is_there.nonzero()[0].tolist():
            theirs = bytes(expected.data[expected.starts[row] : expected.ends[row]])
            assert bytes(found.data[found.starts[row] : found.ends[row]]) == theirs == ENTRIES[int(wanted[row])]
        files.close()
        port.close()


def test_very_sparse_wishes_are_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "_RANGES_MAX", 5)
    with RealBookie(tmp_path) as bookie:
        filled(bookie)
        files = LocalFiles(Offer(*bookie.local_reads.told), bookie.address, 20)
        wanted = numpy.array([0, 2, 9, 10, 11, 40, 90, 200, 202, 390])
        files.ask(7, wanted)
        found = files.answers(wanted, 1 << 20)
        assert found.is_there.all()
        assert [bytes(found.data[a:b]) for a, b in zip(found.starts, found.ends, strict=True)] == [
            ENTRIES[int(each)] for each in wanted
        ]
        files.close()


def test_entries_that_are_too_much_together_are_asked_for_in_smaller_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_reader, "_ANSWERS_BYTES_MAX", 500)
    with RealBookie(tmp_path) as bookie:
        filled(bookie)
        assert texts(reader(bookie.address)) == WANTED
        assert bookie.listener.stats.reads.succeeded.count == 0
