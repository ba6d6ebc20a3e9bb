"""A ledger straight from bookies that fail as a script says: its entries once and in order, sound, or the broker is asked."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pipeline.pyspark_pulsar.client import split_reader, split_rows
from pipeline.pyspark_pulsar.client.bookies import bookie_reader, nearby_bookie, witness
from pipeline.pyspark_pulsar.client.bookies.bookie_connection import BookieConnection
from pipeline.pyspark_pulsar.client.bookies.bookie_reader import BookieReader, NeedsBroker, nearest
from pipeline.pyspark_pulsar.decode import plain, rows
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.ledger_places import Ensemble, LedgerPlaces, parse_places
from pipeline.pyspark_pulsar.options import Access, SourceOptions, parse_options
from pipeline.pyspark_pulsar.plan import Split
from pipeline.pyspark_pulsar.positions import Ledger, LedgerRange
from tests.pipeline.scripted_bookie import ScriptedBookie, stored
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.sections import batch, metadata, single
from wire.payloads import payload_section

COUNT = 12
SECTIONS = {(7, each): batch([single(f"{each}:{half}".encode()) for half in "ab"], each) for each in range(COUNT)}
ENTRIES = {place: stored(*place, section) for place, section in SECTIONS.items()}
WANTED = [f"{each}:{half}" for each in range(COUNT) for half in "ab"]


@pytest.fixture(autouse=True, params=["as it is installed", "by numpy alone"])
def small_windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several windows in a dozen entries, with the compiled kernels and without them; no bookie was checked yet."""
    monkeypatch.setattr(witness, "_known", {})
    monkeypatch.setattr(bookie_reader, "_WINDOW_ENTRIES_MAX", 5)
    if request.param == "by numpy alone":
        monkeypatch.setattr(bookie_reader, "entries_kernel", None)
        monkeypatch.setattr(plain, "entries_kernel", None)


def places(write_quorum: int, *ensembles: tuple[int, tuple[ScriptedBookie, ...]]) -> LedgerPlaces:
    found = tuple(Ensemble(first, tuple(each.address for each in bookies)) for first, bookies in ensembles)
    return LedgerPlaces(7, write_quorum, "CRC32C", found)


def reader(of: LedgerPlaces, first: int = 0) -> BookieReader:
    access = Access("pulsar://unused", "http://unused", timeout_seconds=20)
    return BookieReader(of, [LedgerRange(7, first, COUNT, 1000, of)], access, True)


def texts(found: BookieReader) -> list[str]:
    return [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()]


def test_a_range_is_its_entries_in_order() -> None:
    with ScriptedBookie(ENTRIES) as bookie:
        assert texts(reader(places(1, (0, (bookie,))))) == WANTED
        assert texts(reader(places(1, (0, (bookie,))), first=7)) == WANTED[14:]


def test_entries_of_a_striped_ledger_come_from_the_bookies_that_have_them() -> None:
    held: list[dict[tuple[int, int], bytes]] = [
        {place: each for place, each in ENTRIES.items() if shelf in (place[1] % 3, (place[1] + 1) % 3)} for shelf in range(3)
    ]
    with ScriptedBookie(held[0]) as one, ScriptedBookie(held[1]) as two, ScriptedBookie(held[2]) as three:
        assert texts(reader(places(2, (0, (one, two, three))))) == WANTED
        assert sorted(one.asked + two.asked + three.asked) == list(range(COUNT))


def test_the_copy_on_the_same_machine_is_the_one_that_is_read() -> None:
    assert nearest(("far.example:3181", "127.0.0.1:3182", "localhost:3183")) == "127.0.0.1:3182"
    assert nearest(("far.example:3181", "farther.example:3181")) == "far.example:3181"


def test_bookies_that_failed_are_not_asked_by_the_next_reader_of_the_task() -> None:
    failed: dict[str, str] = {}
    with ScriptedBookie(ENTRIES, 0) as one, ScriptedBookie(ENTRIES) as two:
        of = places(2, (0, (one, two)))
        for first in (0, 6):
            access = Access("pulsar://unused", "http://unused", timeout_seconds=20)
            found = BookieReader(of, [LedgerRange(7, first, COUNT, 1000, of)], access, True, failed)
            assert texts(found) == WANTED[2 * first :]
        assert list(failed) == [one.address]
        assert max(one.asked, default=0) < 10


def test_a_ledger_whose_ensemble_changed_is_read_from_both() -> None:
    early = {place: each for place, each in ENTRIES.items() if place[1] < 4}
    late = {place: each for place, each in ENTRIES.items() if place[1] >= 4}
    with ScriptedBookie(early) as one, ScriptedBookie(late) as two:
        assert texts(reader(places(1, (0, (one,)), (4, (two,))))) == WANTED


DAMAGED = ENTRIES[7, 6][:-1] + b"?"
OTHERS = ENTRIES[7, 5]


@pytest.mark.parametrize(
    "first",
    [
        {place: each for place, each in ENTRIES.items() if place[1] != 6},
        {**ENTRIES, (7, 6): DAMAGED},
        {**ENTRIES, (7, 6): OTHERS},
        {**ENTRIES, (7, 6): b"short"},
    ],
    ids=["missing", "damaged", "of another entry", "cut off"],
)
def test_entries_that_one_bookie_lacks_or_has_damaged_are_read_from_another(first: Mapping[tuple[int, int], bytes]) -> None:
    with ScriptedBookie(first) as one, ScriptedBookie(ENTRIES) as two:
        assert texts(reader(places(2, (0, (one, two))))) == WANTED


@pytest.mark.parametrize("answers", [0, 3, 7])
def test_a_bookie_that_goes_away_is_replaced(answers: int) -> None:
    with ScriptedBookie(ENTRIES, answers) as one, ScriptedBookie(ENTRIES) as two:
        assert texts(reader(places(2, (0, (one, two))))) == WANTED


def test_an_entry_that_no_bookie_has_leaves_its_window_and_the_rest_to_the_broker() -> None:
    with ScriptedBookie({**ENTRIES, (7, 6): DAMAGED}) as one:
        found = reader(places(1, (0, (one,))))
        with pytest.raises(NeedsBroker, match="7:6"):
            texts(found)
        assert [(each.first_entry_id, each.end_entry_id) for each in found.left] == [(5, COUNT)]


def test_many_small_ranges_are_asked_for_together_and_what_lies_between_them_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = []

    def counted(address: str, timeout_seconds: float) -> BookieConnection:
        connected.append(address)
        return BookieConnection(address, timeout_seconds)

    for module in (bookie_reader, nearby_bookie):
        monkeypatch.setattr(module, "BookieConnection", counted)
    ranges = ((0, 1), (2, 5), (6, 7), (8, 9), (11, 12))
    entries = [entry for first, end in ranges for entry in range(first, end)]
    with ScriptedBookie({**ENTRIES, (7, 11): DAMAGED}) as bookie, ScriptedBroker(SECTIONS) as broker:
        of = places(1, (0, (bookie,)))
        split = Split("persistent://public/default/t", tuple(LedgerRange(7, *each, 100, of) for each in ranges))
        found = split_rows.rows_of_split(split, options(broker))
        texts = [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()]
        assert texts == [f"{entry}:{half}" for entry in entries for half in "ab"]
        assert sorted(set(bookie.asked)) == entries
        assert len(connected) == 1
        assert broker.starts == [(7, 0), (7, 8)]  # whether it is the right bookie; of the window in which one is damaged


def options(broker: ScriptedBroker) -> SourceOptions:
    return parse_options({"service.url": broker.url, "admin.url": "http://unused", "topic": "t"}, is_stream=False)


def through_both(bookie: ScriptedBookie, broker: ScriptedBroker) -> list[str]:
    wanted = LedgerRange(7, 0, COUNT, 1000, places(1, (0, (bookie,))))
    found = split_rows.rows_of_split(Split("persistent://public/default/t", (wanted,)), options(broker))
    return [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()]


def test_the_broker_gives_what_is_left() -> None:
    with ScriptedBookie({**ENTRIES, (7, 6): DAMAGED}) as bookie, ScriptedBroker(SECTIONS) as broker:
        assert through_both(bookie, broker) == WANTED
        assert broker.starts == [(7, 0), (7, 5)]


FOREIGN = {(7, each): stored(7, each, batch([single(b"another cluster's")], each)) for each in range(COUNT)}


def test_another_clusters_bookie_with_the_same_address_and_ledger_is_not_believed() -> None:
    with ScriptedBookie(FOREIGN) as bookie, ScriptedBroker(SECTIONS) as broker:
        assert through_both(bookie, broker) == WANTED
        assert broker.starts == [(7, 0), (7, 0)]


def test_each_bookie_is_compared_with_the_broker_before_its_entries_are_handed_out() -> None:
    with ScriptedBookie(ENTRIES) as one, ScriptedBookie(FOREIGN) as two, ScriptedBroker(SECTIONS) as broker:
        wanted = LedgerRange(7, 0, COUNT, 1000, places(1, (0, (one, two))))
        found = split_rows.rows_of_split(Split("persistent://public/default/t", (wanted,)), options(broker))
        assert [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()] == WANTED
        assert set(broker.starts) == {(7, 0), (7, 1)}
    with (
        ScriptedBookie({**ENTRIES, (7, 6): DAMAGED}) as one,
        ScriptedBookie(FOREIGN) as two,
        ScriptedBroker(SECTIONS) as broker,
    ):
        wanted = LedgerRange(7, 6, 7, 100, places(2, (0, (one, two))))
        found = split_rows.rows_of_split(Split("persistent://public/default/t", (wanted,)), options(broker))
        assert [each["value"].decode() for rows in found for each in batch_of(rows, "t", ["value"]).to_pylist()] == WANTED[
            12:14
        ]


def test_each_is_compared_too_where_a_window_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry in each: the second bookie's first one is in a later part than the first one's."""
    monkeypatch.setattr(rows, "PART_BYTES_MAX", 1)
    for bookies in ((FOREIGN, ENTRIES), (ENTRIES, FOREIGN), (ENTRIES, ENTRIES)):
        with ScriptedBookie(bookies[0]) as one, ScriptedBookie(bookies[1]) as two, ScriptedBroker(SECTIONS) as broker:
            wanted = LedgerRange(7, 0, COUNT, 1000, places(1, (0, (one, two))))
            found = split_rows.rows_of_split(Split("persistent://public/default/t", (wanted,)), options(broker))
            assert [each["value"].decode() for part in found for each in batch_of(part, "t", ["value"]).to_pylist()] == WANTED
            if bookies == (ENTRIES, ENTRIES):
                assert broker.starts == [(7, 0), (7, 1)]


def test_a_bookie_is_compared_once_in_a_while() -> None:
    with ScriptedBookie(ENTRIES) as bookie, ScriptedBroker(SECTIONS) as broker:
        for _ in range(3):
            assert through_both(bookie, broker) == WANTED
        assert broker.starts == [(7, 0)]


def test_broker_entry_metadata_before_an_entry_makes_no_difference() -> None:
    index = bytes.fromhex("0e02 00000002 1005")
    entries = {place: stored(*place, index + each) for place, each in SECTIONS.items()}
    with ScriptedBookie(entries) as bookie, ScriptedBroker(SECTIONS) as broker:
        assert through_both(bookie, broker) == WANTED
        assert broker.starts == [(7, 0)]


def test_messages_of_transactions_come_through_the_broker_which_knows_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_reader, "ledgers_of", lambda topic, access: [Ledger(7, COUNT, 1000)])
    section = payload_section(metadata(txnid_most_bits=0, txnid_least_bits=1), b"pending")
    with ScriptedBookie({**ENTRIES, (7, 3): stored(7, 3, section)}) as bookie:
        kept_back = {place: each for place, each in SECTIONS.items() if place != (7, 3)}
        with ScriptedBroker(kept_back) as broker:
            assert through_both(bookie, broker) == [each for each in WANTED if not each.startswith("3:")]
            assert broker.starts == [(7, 0)]


# ---- Where the entries are

TEXT = (
    "LedgerMetadata{{formatVersion=3, ensembleSize=2, writeQuorumSize=2, ackQuorumSize=1, state={state}, length=12800, "
    "lastEntryId=0, digestType={digest}, password=OMITTED, ensembles={{0=[{first}], 70=[h:3181, 10.0.0.1:3182]}}, "
    "customMetadata={{a=base64:eA==}}}}"
)


def test_places_are_read_from_what_brokers_tell() -> None:
    found = parse_places(3, TEXT.format(state="CLOSED", digest="CRC32C", first="h:1, i:2"))
    assert found == LedgerPlaces(3, 2, "CRC32C", (Ensemble(0, ("h:1", "i:2")), Ensemble(70, ("h:3181", "10.0.0.1:3182"))))
    assert parse_places(3, TEXT.format(state="OPEN", digest="CRC32C", first="h:1, i:2")) == replace(found, is_closed=False)
    assert (found.replicas(1), found.replicas(70)) == (("i:2", "h:1"), ("h:3181", "10.0.0.1:3182"))


@pytest.mark.parametrize(
    ("state", "digest", "first"),
    [("IN_RECOVERY", "CRC32C", "h:1"), ("CLOSED", "MAC", "h:1"), ("CLOSED", "CRC32C", "bookie-1"), ("CLOSED", "CRC32C", "")],
)
def test_a_ledger_that_cannot_be_read_from_bookies_has_no_places(state: str, digest: str, first: str) -> None:
    assert parse_places(3, TEXT.format(state=state, digest=digest, first=first)) is None
    assert parse_places(3, "") is None
