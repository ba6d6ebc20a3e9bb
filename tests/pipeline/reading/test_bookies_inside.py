"""Bookies inside a broker: asked for once a plan, read by their files or through the broker, and confused with no other.

The broker that tells of them is a server of a few lines, the files are a real bookie's.
"""

import json
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.pyspark_pulsar.client import split_rows
from pipeline.pyspark_pulsar.client.admin import ledgers_of, ledgers_of_all
from pipeline.pyspark_pulsar.client.bookies import bookie_reader, bookies_inside, witness
from pipeline.pyspark_pulsar.client.bookies.bookie_reader import BookieReader
from pipeline.pyspark_pulsar.client.bookies.local_files import LocalFiles, Offer
from pipeline.pyspark_pulsar.client.connection import Lost
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.ledger_places import Ensemble, LedgerPlaces
from pipeline.pyspark_pulsar.options import Access, parse_options
from pipeline.pyspark_pulsar.plan import Split
from pipeline.pyspark_pulsar.positions import LedgerRange
from tests.bookie.real_bookie import RealBookie
from tests.http_server import QuietHandler, serving
from tests.pipeline.reading.test_local_files import COUNT, ENTRIES, WANTED, filled, run_of
from tests.pipeline.scripted_bookie import ScriptedBookie, stored
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.sections import batch, single

NAME = "127.0.0.1:3181"
ROUTE = "/admin/v2/bookies/local-reads"
SECTIONS = {(7, each): data[36:] for each, data in ENTRIES.items()}
FOREIGN = {(7, each): stored(7, each, batch([single(b"another's")], each)) for each in range(COUNT)}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets all answers and checks, and makes windows small."""
    monkeypatch.setattr(bookies_inside, "_remembered", {})
    monkeypatch.setattr(witness, "_known", {})
    monkeypatch.setattr(bookie_reader, "_WINDOW_ENTRIES_MAX", 50)


class Admin:
    """Admin REST with answers about bookies inside and the ledgers, and the requests that it got."""

    def __init__(self, status: int = 200, told: Any = None, bookie: str = NAME, state: str = "CLOSED") -> None:
        self.status, self.told, self.bookie, self.state = status, {} if told is None else told, bookie, state
        self.asked = Counter[str]()

    def answer(self, path: str) -> tuple[int, Any]:
        if path == ROUTE:
            return self.status, self.told
        text = f"LedgerMetadata{{writeQuorumSize=1, state={self.state}, digestType=CRC32C, ensembles={{0=[{self.bookie}]}}}}"
        ledger = {"ledgerId": 7, "entries": COUNT, "size": 1000, "metadata": text if "metadata=true" in path else ""}
        return 200, {"ledgers": [ledger], "currentLedgerEntries": 2, "currentLedgerSize": 20, "cursors": {}}


def served(admin: Admin) -> AbstractContextManager[str]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            admin.asked[self.path.partition("?")[0]] += 1
            status, body = admin.answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return serving(Handler)


def access(url: str) -> Access:
    return Access("pulsar://unused", url, timeout_seconds=20)


def offer_of(bookie: RealBookie) -> dict[str, str]:
    name, token = bookie.local_reads.told
    return {"socket": name.decode(), "token": token.hex()}


# ---- The plan


TOPICS = [f"persistent://public/default/t{number}" for number in range(20)]


@pytest.mark.parametrize("status", [404, 401, 403, 500])
def test_a_broker_that_does_not_tell_is_asked_once_for_a_plan_of_many_topics(status: int) -> None:
    with served(admin := Admin(status, {"reason": "no"})) as url:
        found = ledgers_of_all(TOPICS, access(url), with_places=True)
    assert admin.asked[ROUTE] == 1
    assert {each.places.inside for ledgers in found.values() for each in ledgers if each.places} == {frozenset()}


@pytest.mark.parametrize("told", [[], [1], "text", 7, None, {NAME: {}}, {NAME: 3}, {NAME: {"socket": "a", "token": "no hex"}}])
def test_an_answer_that_is_none_tells_of_nobody(told: Any) -> None:
    admin = Admin()
    admin.told = told
    with served(admin) as url:
        [ledger] = ledgers_of(TOPICS[0], access(url), with_places=True)
    assert ledger.places is not None
    assert not ledger.places.inside


def test_local_files_are_not_asked_for_when_bookies_are_reachable_or_not_wanted() -> None:
    with served(admin := Admin(bookie="10.0.0.1:3181")) as url:
        ledgers_of_all(TOPICS, access(url), with_places=True)
        admin.bookie = NAME
        ledgers_of_all(TOPICS, access(url))
        assert admin.asked[ROUTE] == 0


def test_places_name_the_bookies_inside_and_no_plan_has_the_token() -> None:
    token = bytes(range(16))
    with served(Admin(told={NAME: {"socket": "s", "token": token.hex()}})) as url:
        [ledger] = ledgers_of(TOPICS[0], access(url), with_places=True)
    assert ledger.places is not None
    assert ledger.places.inside == {NAME}
    assert token not in (kept := pickle.dumps(ledger))
    assert token.hex().encode() not in kept


@pytest.mark.parametrize("state", ["OPEN", "CLOSED"])
def test_a_ledger_that_is_written_to_has_places_only_where_its_bookies_are_inside(state: str) -> None:
    admin = Admin(state=state)
    with served(admin) as url:
        [alone] = ledgers_of(TOPICS[0], access(url), with_places=True)
        admin.told = {NAME: {"socket": "s", "token": ""}}
        [told] = ledgers_of(TOPICS[0], replace(access(url), service_url="pulsar://another"), with_places=True)
    assert (alone.places is not None) == (state == "CLOSED")
    assert told.places is not None


# ---- Reading


def places(bookie: str = NAME, *, inside: bool = True) -> LedgerPlaces:
    return LedgerPlaces(7, 1, "CRC32C", (Ensemble(0, (bookie,)),), inside=frozenset([bookie] if inside else []))


def through(url: str, broker: ScriptedBroker, of: LedgerPlaces) -> list[str]:
    given = {"service.url": broker.url, "admin.url": url, "topic": "t"}
    split = Split("persistent://public/default/t", (LedgerRange(7, 0, COUNT, 1000, of),))
    found = split_rows.rows_of_split(split, parse_options(given, is_stream=False))
    return [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()]


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(SECTIONS) as scripted:
        yield scripted


def test_entries_come_from_the_files_and_one_is_compared_with_the_brokers(tmp_path: Path, broker: ScriptedBroker) -> None:
    with RealBookie(tmp_path) as bookie, served(Admin(told={NAME: offer_of(bookie)})) as url:
        filled(bookie)
        assert through(url, broker, places()) == WANTED
        assert broker.starts == [(7, 0)]
        assert bookie.listener.stats.local_entries == COUNT
        assert bookie.listener.stats.reads.succeeded.count == 0


@pytest.mark.parametrize("has_kernels", [True, False])
@pytest.mark.parametrize("flushed", [0, 100, 130])
def test_entries_not_yet_in_files_are_read_through_the_broker(
    tmp_path: Path, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch, flushed: int, has_kernels: bool
) -> None:
    if not has_kernels:
        monkeypatch.setattr(bookie_reader, "entries_kernel", None)
    with RealBookie(tmp_path) as bookie, served(Admin(told={NAME: offer_of(bookie)})) as url:
        if flushed:
            bookie.add([run_of(0, flushed)])
        bookie.add([run_of(flushed, COUNT)], flush=False)
        assert through(url, broker, places()) == WANTED
        window = flushed // 50 * 50  # one that is not whole in files is the broker's
        assert broker.starts == [(7, 0), (7, window)] if window else [(7, 0)]


def gone(bookie: RealBookie) -> Any:
    """A socket that there is not, as from another machine."""
    return {"socket": "interpulse-bookie-nowhere", "token": "00" * 16}


def wrong(bookie: RealBookie) -> Any:
    """The right socket with a token that is not its own."""
    return {**offer_of(bookie), "token": "00" * 16}


def long(bookie: RealBookie) -> Any:
    return {"socket": "x" * 200, "token": "00" * 16}


def nothing(bookie: RealBookie) -> Any:
    return {}


@pytest.mark.parametrize("offer", [gone, wrong, long, nothing])
def test_all_is_read_through_the_broker_and_not_the_bookie_address_when_files_are_unusable(
    tmp_path: Path, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch, offer: Callable[[RealBookie], Any]
) -> None:
    """Another cluster's bookie listens at the address."""
    with RealBookie(tmp_path) as bookie, ScriptedBookie(FOREIGN) as other:
        with served(Admin(told={other.address: offer(bookie)})) as url:
            assert through(url, broker, places(other.address)) == WANTED
        assert other.asked == []
        assert broker.starts == [(7, 0)]


def test_files_that_end_in_the_middle_are_replaced_by_the_broker_from_there_on(tmp_path: Path, broker: ScriptedBroker) -> None:
    with RealBookie(tmp_path) as bookie, ScriptedBookie(FOREIGN) as other:
        with served(Admin(told={other.address: offer_of(bookie)})) as url:
            filled(bookie)
            given = {"service.url": broker.url, "admin.url": url, "topic": "t"}
            split = Split("persistent://public/default/t", (LedgerRange(7, 0, COUNT, 1000, places(other.address)),))
            found = split_rows.rows_of_split(split, parse_options(given, is_stream=False))
            rows = [next(found)]
            bookie.call(bookie.close_local_reads)
            rows += found
        assert [each["value"].decode() for some in rows for each in batch_of(some, "t", ["value"]).to_pylist()] == WANTED
        assert other.asked == []
        assert broker.starts[0] == (7, 0)
        assert len(broker.starts) == 2


def test_files_of_another_process_are_not_believed(tmp_path: Path) -> None:
    """The `admin.url` may be of another standalone than `service.url`."""
    theirs = {place: data[36:] for place, data in FOREIGN.items()}
    with RealBookie(tmp_path) as bookie, served(Admin(told={NAME: offer_of(bookie)})) as url, ScriptedBroker(theirs) as broker:
        filled(bookie)
        assert through(url, broker, places()) == ["another's"] * COUNT
        assert broker.starts == [(7, 0), (7, 0)]


def test_matching_files_do_not_vouch_for_the_bookie_that_listens_at_their_address(
    tmp_path: Path, broker: ScriptedBroker
) -> None:
    with RealBookie(tmp_path) as bookie, ScriptedBookie(FOREIGN) as other:
        filled(bookie)
        with served(Admin(told={other.address: offer_of(bookie)})) as url:
            assert through(url, broker, places(other.address)) == WANTED
            assert through(url, broker, places(other.address, inside=False)) == WANTED
        assert broker.starts == [(7, 0), (7, 0), (7, 0)]  # compared, compared, and read


def test_one_that_was_started_again_is_asked_for_anew(tmp_path: Path, broker: ScriptedBroker) -> None:
    admin = Admin()
    with RealBookie(tmp_path) as bookie, served(admin) as url:
        filled(bookie)
        admin.told = {NAME: gone(bookie)}
        asked = Access("pulsar://unused", url, timeout_seconds=20)
        wanted = [LedgerRange(7, 0, COUNT, 1000, places())]
        ledgers_of(TOPICS[0], asked, with_places=True)
        admin.told = {NAME: offer_of(bookie)}
        assert sum(rows.message_count for rows in BookieReader(places(), wanted, asked, True)) == 2 * COUNT
        before = admin.asked[ROUTE]
        assert sum(rows.message_count for rows in BookieReader(places(), wanted, asked, True)) == 2 * COUNT
        assert admin.asked[ROUTE] == before  # a task with many ledgers asks once


def test_one_on_another_machine_is_asked_for_once_by_a_task_of_many_topics(tmp_path: Path, broker: ScriptedBroker) -> None:
    admin = Admin()
    with RealBookie(tmp_path) as bookie, served(admin) as url:
        admin.told = {NAME: gone(bookie)}
        for _ in range(5):
            assert through(url, broker, places()) == WANTED
        assert admin.asked[ROUTE] == 1


def test_a_machine_without_such_sockets_is_one_without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> socket.socket:
        raise OSError("Protocol not supported")

    monkeypatch.setattr(socket, "socket", unknown)
    with pytest.raises(Lost, match="not supported"):
        LocalFiles(Offer(b"s", bytes(16)), NAME, 20)
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(Lost, match="no such sockets"):
        LocalFiles(Offer(b"s", bytes(16)), NAME, 20)
