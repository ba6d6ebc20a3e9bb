"""A split through a broker that fails as a script says: entries once and in order, or an error that names topic and place."""

import pytest

from pipeline.pyspark_pulsar.client import split_reader
from pipeline.pyspark_pulsar.client.split_reader import SplitReader
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.errors import DataLost, NoSuchTopic, Refused, Unreachable
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.plan import Split
from pipeline.pyspark_pulsar.positions import Ledger, LedgerRange
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.sections import batch, metadata, single
from wire.payloads import payload_section

TOPIC = "persistent://public/default/t"
LEDGERS = {1: 5, 4: 6}
SPLIT = Split(TOPIC, (LedgerRange(1, 2, 5, 100), LedgerRange(4, 0, 4, 100)))
WANTED = [
    f"{ledger}:{entry}:{half}" for ledger, entry in ((1, 2), (1, 3), (1, 4), (4, 0), (4, 1), (4, 2), (4, 3)) for half in "ab"
]


def entry(ledger_id: int, entry_id: int) -> bytes:
    """A batch of two messages, which say where they are."""
    return batch([single(f"{ledger_id}:{entry_id}:{half}".encode()) for half in "ab"], entry_id)


ENTRIES = {(ledger, each): entry(ledger, each) for ledger, count in LEDGERS.items() for each in range(count)}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Ledgers in the admin REST; no topic where a test empties it. The reader waits only briefly before it asks."""
    ledgers = dict(LEDGERS)

    def ledgers_of(topic: str, access: Access) -> list[Ledger]:
        if not ledgers:
            raise NoSuchTopic(topic)
        return [Ledger(ledger, count, 100) for ledger, count in ledgers.items()]

    monkeypatch.setattr("pipeline.pyspark_pulsar.client.split_reader.is_nothing_left", lambda *_: not ledgers)
    monkeypatch.setattr("pipeline.pyspark_pulsar.client.split_reader.readable_until", lambda *_: None)
    monkeypatch.setattr(split_reader, "ledgers_of", ledgers_of)
    monkeypatch.setattr(split_reader, "_LOOK_SECONDS", 0.02)
    return ledgers


def read(broker: ScriptedBroker, fails: bool = True, auth: str = "", timeout_seconds: float = 20.0) -> list[str]:
    reader = SplitReader(SPLIT, Access(broker.url, "http://unused", auth, timeout_seconds=timeout_seconds), fails)
    return [each["value"].decode() for rows in reader for each in batch_of(rows, TOPIC, ["value"]).to_pylist()]


@pytest.mark.usefixtures("there")
def test_a_split_is_its_entries_and_no_others() -> None:
    with ScriptedBroker(ENTRIES) as broker:
        assert read(broker) == WANTED
        assert broker.starts == [(1, 2)]


@pytest.mark.usefixtures("there")
def test_a_reader_whose_broker_goes_away_reads_on_where_it_was() -> None:
    with ScriptedBroker(ENTRIES, cuts=[2, 0, 1, 0, None]) as broker:
        assert read(broker) == WANTED
        assert broker.starts == [(1, 2), (1, 4), (1, 4), (1, 5), (1, 5)]


@pytest.mark.usefixtures("there")
def test_entries_that_a_broker_does_not_dispatch_are_not_reported_as_lost() -> None:
    kept_back = {(1, 3), (4, 0)}
    with ScriptedBroker({place: each for place, each in ENTRIES.items() if place not in kept_back}) as broker:
        assert read(broker) == [each for each in WANTED if not each.startswith(("1:3:", "4:0:"))]


def test_a_ledger_that_was_deleted_meanwhile_is_lost_data_and_is_named(there: dict[int, int]) -> None:
    del there[4]
    with ScriptedBroker({place: each for place, each in ENTRIES.items() if place[0] == 1}) as broker:
        with pytest.raises(DataLost, match=r"default/t: 4 entries between 1:2 and 4:3 are missing: 4 of ledger 4, deleted"):
            read(broker)
        assert read(broker, fails=False) == WANTED[:6]


def test_a_ledger_that_went_before_the_ones_that_were_read_is_lost_data_too(
    there: dict[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    """The broker begins with what it has: nothing is awaited, and all that was planned last is there."""
    del there[1]
    with ScriptedBroker({place: each for place, each in ENTRIES.items() if place[0] == 4}) as broker:
        with pytest.raises(DataLost, match=r"3 entries between 1:2 and 4:3 are missing: 3 of ledger 1, .*failOnDataLoss=false"):
            read(broker)
        assert read(broker, fails=False) == WANTED[6:]
    assert "3 entries between 1:2 and 4:3 are missing: 3 of ledger 1" in caplog.text


def test_a_topic_that_was_deleted_meanwhile_is_lost_data_too(there: dict[int, int]) -> None:
    there.clear()
    with ScriptedBroker({}) as broker:
        with pytest.raises(DataLost, match=r"default/t: 7 entries .* are missing: 3 of ledger 1, 4 of ledger 4"):
            read(broker)
        assert read(broker, fails=False) == []


@pytest.mark.usefixtures("there")
def test_a_message_that_is_there_and_does_not_come_is_waited_for_within_the_time_and_named() -> None:
    with ScriptedBroker({}) as broker, pytest.raises(Unreachable, match=r"default/t at 1:2: no message came in 0\.1 s"):
        read(broker, timeout_seconds=0.1)


@pytest.mark.usefixtures("there")
def test_a_wrong_token_is_refused_at_once_and_a_right_one_is_taken() -> None:
    with ScriptedBroker(ENTRIES, token="right") as broker:
        with pytest.raises(Refused, match="AuthenticationError: wrong token"):
            read(broker, auth="token:wrong")
        assert read(broker, auth="token:right") == WANTED


@pytest.mark.usefixtures("there")
def test_a_broker_that_is_not_there_is_named_when_the_time_is_up() -> None:
    with ScriptedBroker(ENTRIES) as broker:
        gone = broker.url
    reader = SplitReader(SPLIT, Access(gone, "http://unused", timeout_seconds=0.05), True)
    with pytest.raises(Unreachable, match=r"default/t at 1:2: .*127\.0\.0\.1:.*; asked again for 0\.05 s"):
        list(reader)


@pytest.mark.usefixtures("there")
def test_single_messages_are_read_like_batches() -> None:
    entries = {place: payload_section(metadata(), f"{place[0]}:{place[1]}".encode()) for place in ENTRIES}
    with ScriptedBroker(entries) as broker:
        assert read(broker) == [each.removesuffix(":a") for each in WANTED[::2]]
