"""Memory of a task is bounded by its blocks whatever the topic: bytes that are held, counted for topics of several sizes."""

import numpy
import pytest

from pipeline.pyspark_pulsar.client import split_reader
from pipeline.pyspark_pulsar.client.bookies import bookie_reader
from pipeline.pyspark_pulsar.client.bookies.bookie_connection import BookieConnection
from pipeline.pyspark_pulsar.client.bookies.bookie_reader import BookieReader
from pipeline.pyspark_pulsar.client.connection import Connection
from pipeline.pyspark_pulsar.client.split_reader import SplitReader
from pipeline.pyspark_pulsar.decode import rows as rows_module
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.decode.rows import rows_in_parts
from pipeline.pyspark_pulsar.ledger_places import Ensemble, LedgerPlaces
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.plan import Split
from pipeline.pyspark_pulsar.positions import LedgerRange
from tests.pipeline.scripted_bookie import ScriptedBookie, stored
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.sections import batch, block, metadata, single
from wire.payloads import payload_section

KB = 1 << 10


def access(url: str = "pulsar://unused") -> Access:
    return Access(url, "http://unused", timeout_seconds=20)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that a connection to a broker held, each time that it had received more."""
    held: list[int] = []
    receive = Connection._receive

    def counted(self: Connection, seconds: float) -> None:
        receive(self, seconds)
        held.append(len(self._buffer))

    monkeypatch.setattr(Connection, "_receive", counted)
    monkeypatch.setattr(split_reader, "_BLOCK_BYTES", 64 * KB)
    return held


@pytest.mark.parametrize("count", [200, 800])
def test_entries_from_a_broker_are_held_one_block_at_a_time(received: list[int], count: int) -> None:
    """A broker sends ahead as many as it was allowed to: they wait in the sockets, and not here."""
    entries = {(7, each): batch([single(b"x" * 8 * KB)], each) for each in range(count)}
    split = Split("persistent://public/default/t", (LedgerRange(7, 0, count, 8 * KB * count),))
    with ScriptedBroker(entries) as broker:
        blocks = [rows.block.data.nbytes for rows in SplitReader(split, access(broker.url), True)]
    assert max(received) < 64 * KB + (1 << 20) + 16 * KB
    assert max(blocks) < 64 * KB + (1 << 20) + 16 * KB


@pytest.mark.parametrize("count", [8, 64])
def test_highly_compressed_entries_are_decompressed_one_part_at_a_time(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(rows_module, "PART_BYTES_MAX", 256 * KB)
    zeros = block(*(batch([single(bytes(64 * KB))], each, compressed=True) for each in range(count)))
    held, found = [], 0
    for rows in rows_in_parts(zeros):
        held.append(rows.data.nbytes - zeros.data.nbytes)
        found += len(batch_of(rows, "t", ["value"]))
    assert found == count
    assert max(held) <= 256 * KB + 66 * KB


def test_many_small_messages_are_rows_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "PART_BYTES_MAX", 100 * KB)
    entries = block(*(batch([single(b"")] * 100, each) for each in range(40)))
    counts = [rows.count for rows in rows_in_parts(entries)]
    assert sum(counts) == 4000
    assert max(counts) <= 100 * KB // 200 + 100


def test_parts_are_the_same_rows_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = block(
        *(batch([single(f"{each}:{at}".encode()) for at in range(3)], each, compressed=each % 2 == 0) for each in range(50))
    )
    whole = [rows.count for rows in rows_in_parts(entries)]
    values = [each for rows in rows_in_parts(entries) for each in batch_of(rows, "t", ["value", "message_id"]).to_pylist()]
    monkeypatch.setattr(rows_module, "PART_BYTES_MAX", 5000)
    parts = list(rows_in_parts(entries))
    assert (whole, len(parts) > 5) == ([150], True)
    assert [each for rows in parts for each in batch_of(rows, "t", ["value", "message_id"]).to_pylist()] == values
    assert sum(len(rows.errors) for rows in parts) == entries.count


@pytest.mark.parametrize("large", [40, 160])
def test_entries_that_become_larger_within_a_ledger_do_not_fill_a_task(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    """A window is as many entries as fit on average. Its bytes are bounded when entries are larger, and all come once."""
    monkeypatch.setattr(bookie_reader, "_WINDOW_BYTES", 64 * KB)
    monkeypatch.setattr(bookie_reader, "_ANSWERS_BYTES_MAX", 256 * KB)
    held: list[int] = []
    check = BookieConnection._check_held

    def counted(self: BookieConnection, now: int, wanted: int, came: int, bytes_max: int) -> None:
        held.append(now)
        check(self, now, wanted, came, bytes_max)

    monkeypatch.setattr(BookieConnection, "_check_held", counted)
    sizes = [10] * 3000 + [30 * KB] * large + [10] * 500
    entries = {(7, at): stored(7, at, payload_section(metadata(at), bytes(size))) for at, size in enumerate(sizes)}
    average = sum(sizes) // len(sizes)
    with ScriptedBookie(entries) as bookie:
        places = LedgerPlaces(7, 1, "CRC32C", (Ensemble(0, (bookie.address,)),))
        wanted = LedgerRange(7, 0, len(sizes), average * len(sizes) // 20, places)
        reader = BookieReader(places, [wanted], access(), True)
        found = [size for rows in reader for size in (rows.values.ends - rows.values.starts).tolist()]
    assert found == sizes
    assert max(held) <= 256 * KB + (1 << 20)
    assert numpy.array(sizes).sum() > 1 << 20
