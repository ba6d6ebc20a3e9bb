"""Bookies of a cluster by the metadata: addresses of nodes and names, those that take entries, and those only read from."""

import asyncio

import pytest

from bookkeeper.network.network_bookies import Address, NetworkBookies, address_in, decode_address
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run
from wire.generated.ledger_metadata_pb2 import BookieServiceInfoFormat


def info(protocol: str, host: str, port: int) -> bytes:
    endpoint = BookieServiceInfoFormat.Endpoint(id="bookie", host=host, port=port, protocol=protocol)
    return BookieServiceInfoFormat(endpoints=[endpoint]).SerializeToString()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("host:3181", Address("host", 3181)),
        ("10.0.0.1:1", Address("10.0.0.1", 1)),
        ("bookie-1", None),
        (":3181", None),
        ("host:", None),
        ("host:x", None),
        ("host:-1", None),
        ("host:\u0663", None),
        ("", None),
    ],
)
def test_a_name_is_an_address_if_it_is_a_host_and_a_port(name: str, address: Address | None) -> None:
    assert address_in(name) == address


def test_the_endpoint_of_the_bookie_protocol_counts_and_the_name_of_an_old_bookie() -> None:
    assert decode_address("id", info("bookie-rpc", "host", 3182)) == Address("host", 3182)
    assert decode_address("host:3181", info("http", "host", 8080)) == Address("host", 3181)
    assert decode_address("host:3181", b"") == Address("host", 3181)
    assert decode_address("id", b"") is None


def test_a_node_that_cannot_be_read_is_logged_and_the_name_counts(caplog: pytest.LogCaptureFixture) -> None:
    assert decode_address("host:3181", b"\xff\xff") == Address("host", 3181)
    assert 'bookie="host:3181"' in caplog.text or "bookie=host:3181" in caplog.text


def test_writable_bookies_are_iterated_and_others_are_found_by_name() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        await store.put("/ledgers/available/a:1", b"")
        await store.put("/ledgers/available/readonly/b:2", b"")
        await store.put("/ledgers/available/named", info("bookie-rpc", "host", 3))
        bookies = NetworkBookies(store)
        await bookies.open()
        assert sorted(bookies) == ["a:1", "named"]
        assert (len(bookies), bookies.count_known()) == (2, 3)
        assert bookies["a:1"] is bookies["a:1"], "one client of each"
        assert bookies["b:2"] is not bookies["gone:4"], "entries are read from bookies that are not registered, too"
        with pytest.raises(KeyError):
            bookies["no-address"]
        await store.put("/ledgers/available/readonly/a:1", b"")
        await asyncio.sleep(1)
        assert list(bookies) == ["named"]
        await bookies.close()

    run(scenario)


def test_publishing_is_refused_only_where_bookies_are_read_only_and_too_few_others_are_there() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        bookies = NetworkBookies(store)
        await bookies.open()
        assert bookies.publish_refusal(1) == "", "none is there: they may come back"
        await store.put("/ledgers/available/a:1", b"")
        await store.put("/ledgers/available/readonly/c:3", b"")
        await store.put("/ledgers/available/readonly/b:2", b"")
        await asyncio.sleep(1)
        assert bookies.publish_refusal(1) == ""
        assert bookies.publish_refusal(2) == "1 bookies take entries, 2 must; read-only (a full disk?): b:2, c:3"
        await bookies.close()

    run(scenario)
