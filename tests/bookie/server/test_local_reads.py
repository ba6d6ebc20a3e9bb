"""Local reads: the very bytes that the bookie would send, for readers with the token alone."""

import os
import random
import socket
import struct
from array import array
from pathlib import Path

import pytest

from bookie.server import local_reads
from bookie.server.local_reads import LocalReads
from ports.network import local_port
from tests.bookie.real_bookie import RealBookie
from tests.bookie.runs import entries_of, sealed
from tests.bookie.server.client import Served, served
from wire.bookie.local_reads import ANSWER_BYTES_MAX, Segment, decode_request, encode_answer
from wire.generated import bookie_protocol_pb2 as api
from wire.run import EntryRun


class Reader:
    """Asks with the token, and reads what it is told from the files."""

    def __init__(self, reads: LocalReads, token: bytes | None = None) -> None:
        name, own_token = reads.told
        self._token = own_token if token is None else token
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        try:
            self.socket.connect(b"\0" + name)
        except OSError:
            self.socket.close()
            raise
        self.files: list[int] = []

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()
        for each in self.files:
            os.close(each)

    def told(self, ledger_id: int, *ranges: tuple[int, int]) -> list[Segment]:
        self.socket.send(self._token + struct.pack("<q", ledger_id) + b"".join(struct.pack("<qq", *each) for each in ranges))
        message, descriptors, flags, _ = socket.recv_fds(self.socket, ANSWER_BYTES_MAX, 253)
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        self.files += descriptors
        return _segments(message)

    def entries(self, ledger_id: int, *ranges: tuple[int, int]) -> dict[int, bytes]:
        found = {}
        for each in self.told(ledger_id, *ranges):
            for index in range(len(each.offsets) - 1):
                start, end = each.offsets[index : index + 2]
                found[each.first_entry_id + index] = os.pread(self.files[each.file], end - start, each.place + start)
        return found


def _segments(message: bytes) -> list[Segment]:
    (count,) = struct.unpack_from("<I", message)
    heads = [struct.unpack_from("<IIQq", message, 4 + 24 * index) for index in range(count)]
    at, found = 4 + 24 * count, []
    for file, entries, place, first in heads:
        found.append(Segment(file, place, first, array("I", message[at : at + 4 * (entries + 1)])))
        at += 4 * (entries + 1)
    assert at == len(message)
    return found


def all_of(runs: list[EntryRun]) -> dict[int, bytes]:
    return {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}


def test_the_port_says_where_to_ask_and_other_clients_are_told_nothing_of_it() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            for offer, requested, expected in (
                (None, 7, False),
                ((b"name", b"t" * 16), 3, False),
                ((b"name", b"t" * 16), 1 << 20, True),
            ):
                at.listener.operations.local_reads = offer
                asked = api.GetBookieInfoRequest(requested=requested | 1 << 20 if offer is None else requested)
                found = (await client.ask3(api.GET_BOOKIE_INFO, getBookieInfoRequest=asked)).getBookieInfoResponse
                assert found.HasField("localReads") is expected
            assert (found.localReads.socket, found.localReads.token) == (b"name", b"t" * 16)

    served(scenario)


def test_entries_are_in_the_files_as_they_were_added(tmp_path: Path) -> None:
    runs = [sealed(7, first, 10, 1000) for first in range(0, 1000, 10)]
    with RealBookie(tmp_path) as at:
        for start in range(0, 100, 20):
            at.add(runs[start : start + 20])
        with Reader(at.local_reads) as reader:
            assert reader.entries(7, (0, 1000)) == all_of(runs)
            files = len(reader.files)
            assert files > 1
            assert reader.entries(7, (0, 1000)) == all_of(runs)
            assert len(reader.files) == files, "each file comes once"
            some = {entry_id: data for entry_id, data in all_of(runs).items() if 5 <= entry_id < 17 or 333 <= entry_id < 334}
            assert reader.entries(7, (5, 17), (333, 334)) == some
            assert reader.entries(7, (990, 2000)).keys() == set(range(990, 1000))
            assert reader.entries(7, (17, 17)) == reader.entries(7, (20, 10)) == reader.entries(8, (0, 10)) == {}
        assert at.listener.stats.local_entries == 2 * 1000 + 13 + 10


@pytest.mark.parametrize("seed", range(10))
def test_local_reads_find_the_same_entries_as_the_bookie_itself(tmp_path: Path, seed: int) -> None:
    """Gaps, entries that were written again, some of it flushed and some not, and logs that were compacted."""
    rng = random.Random(seed)
    with RealBookie(tmp_path) as at:
        for number in range(rng.randint(2, 12)):
            first = rng.randint(0, 300)
            runs = [sealed(ledger_id, first, rng.randint(1, 60), rng.choice((10, 500, 5000)), number) for ledger_id in (7, 9)]
            at.add(runs, flush=rng.random() < 0.7)
        if rng.random() < 0.5:
            at.call(lambda: at.bookie.delete([9]))
            at.call(at.bookie.flush)
            at.call(lambda: at.bookie.compact("major"))
        with Reader(at.local_reads) as reader:
            told = reader.entries(7, (0, 200), (200, 400))

        async def given() -> dict[int, bytes]:
            return {entry_id: entries_of(await at.bookie.read(7, entry_id, 1, 1))[entry_id] for entry_id in told}

        assert told == at.call(given)
        in_memory = [first for table in at.bookie._flusher.tables for first, _ in table.ranges_of(7)]
        stored = {entry_id for first, last in at.bookie.held_ranges(7) for entry_id in range(first, last + 1)}
        assert told.keys() == {entry_id for entry_id in stored if entry_id < min(in_memory, default=1000)}


def test_local_reads_stop_before_an_entry_that_is_only_in_memory(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        at.add([sealed(7, 0, 10), sealed(7, 10, 10)])
        at.add([sealed(7, 5, 2, fill=1)], flush=False)
        assert reader.entries(7, (0, 20)).keys() == set(range(5))
        at.call(at.bookie.flush)
        assert reader.entries(7, (0, 20)).keys() == set(range(20))
        assert reader.entries(7, (5, 7)) == entries_of(sealed(7, 5, 2, fill=1))


def test_a_file_that_was_handed_over_is_read_to_its_end_though_it_was_deleted(tmp_path: Path) -> None:
    runs = [sealed(7, first, 10, 1000) for first in range(0, 100, 10)]
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        at.add(runs)
        [segment, *_] = reader.told(7, (0, 1))
        at.call(lambda: at.bookie.delete([7]))
        at.call(at.bookie.flush)
        assert reader.told(7, (0, 100)) == []
        start, end = segment.offsets
        assert os.pread(reader.files[0], end - start, segment.place + start) == all_of(runs)[0]


@pytest.mark.parametrize("message", [b"", b"x" * 16 + b"\0" * 24, b"x"], ids=["nothing", "another token", "short"])
def test_a_local_reader_without_the_token_is_disconnected(tmp_path: Path, message: bytes) -> None:
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as stranger, Reader(at.local_reads) as reader:
        at.add([sealed(7, 0, 10)])
        stranger.socket.send(message)
        assert stranger.socket.recv(100) == b""
        assert len(reader.entries(7, (0, 10))) == 10


def test_an_answer_has_its_bounds_and_the_rest_is_left_to_be_asked_for(tmp_path: Path) -> None:
    runs = [sealed(7, first, 10_000, 1) for first in range(0, 60_000, 10_000)]
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        at.add(runs)
        found = reader.entries(7, (0, 60_000))
        assert 20_000 < len(found) < 40_000
        assert found.keys() == set(range(len(found)))


def test_a_peer_holds_no_more_files_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_port, "FILES_MAX", 2)
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        for start in range(0, 2000, 500):
            at.add([sealed(7, first, 10, 1000) for first in range(start, start + 500, 10)])
        assert 0 < len(reader.entries(7, (0, 2000))) < 2000
        assert len(reader.files) == 2


def test_descriptors_are_closed_here_once_they_are_handed_over(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as at:
        at.add([sealed(7, first, 10, 1000) for first in range(0, 1000, 10)])
        with Reader(at.local_reads) as reader:
            reader.entries(7, (0, 1000))
            before = len(os.listdir("/proc/self/fd")) - len(reader.files)
        for _ in range(3):
            with Reader(at.local_reads) as reader:
                reader.entries(7, (0, 1000))
                held = len(os.listdir("/proc/self/fd")) - len(reader.files)
                assert held <= before + 2, "only connections that end a little later"


def test_a_log_that_went_away_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: str) -> int:
        raise FileNotFoundError(path)

    monkeypatch.setattr(local_reads, "open_to_share", gone)
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        at.add([sealed(7, 0, 10)])
        assert reader.told(7, (0, 10)) == []


def test_closing_ends_connections(tmp_path: Path) -> None:
    with RealBookie(tmp_path) as at, Reader(at.local_reads) as reader:
        at.call(at.close_local_reads)
        assert reader.socket.recv(10) == b""
        with pytest.raises(ConnectionRefusedError):
            Reader(at.local_reads)


def test_requests_and_answers_as_bytes() -> None:
    token = bytes(range(16))
    plain = token + struct.pack("<qqqqq", 7, 1, 2, 30, 40)
    assert decode_request(plain, token) == (7, [(1, 2), (30, 40)])
    assert decode_request(plain[:24], token) == (7, [])
    for wrong in (plain[:23], plain[:-1], plain[1:], b"", bytes(40)):
        assert decode_request(wrong, token) is None
    segments = [Segment(1, 4096, 5, array("I", [100, 200, 250])), Segment(0, 8192, 9, array("I", [0, 1]))]
    assert _segments(encode_answer(segments)) == segments
    assert len(encode_answer(segments)) == 4 + sum(each.size_bytes for each in segments)
