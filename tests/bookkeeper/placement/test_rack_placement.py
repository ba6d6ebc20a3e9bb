"""Choice of bookies: spread over racks and regions, out of quarantine, as `/bookies` says."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.quarantine import Quarantine, QuarantineRule
from bookkeeper.placement.rack_data import MalformedRackData, parse_rack_data
from bookkeeper.placement.rack_placement import SpreadPlacement
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore
from metadata.store import Put
from tests.bookkeeper.fake_bookies import Cluster, FixedClock, batch, run, settle
from tests.bookkeeper.write.test_ledger_ensembles import metadata_of
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode

checked_machines = checked_after_each_step(Quarantine)


def racks_in(ensemble: Sequence[str], write_quorum: int, place_of: dict[str, str]) -> int:
    """Racks in the write quorum that has fewest."""
    size = len(ensemble)
    windows = [{place_of[ensemble[(start + step) % size]] for step in range(write_quorum)} for start in range(size)]
    return min(len(window) for window in windows)


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 4), st.data())
def test_with_bookies_enough_in_each_rack_no_write_quorum_is_in_one_rack(
    seed: int, racks: int, per_rack: int, data: st.DataObject
) -> None:
    place_of = {f"b{rack}-{number}": f"/rack{rack}" for rack in range(racks) for number in range(per_rack)}
    write_quorum = data.draw(st.integers(2, min(3, len(place_of))))
    size = data.draw(
        st.integers(write_quorum, min(5, racks * 2)).filter(lambda size: size % racks != 1 or size == write_quorum)
    )
    placement = SpreadPlacement(place_of.__getitem__, 2, Random(seed))
    ensemble = placement.ensemble(place_of, size, write_quorum)
    assert len(set(ensemble)) == size
    assert racks_in(ensemble, write_quorum, place_of) >= 2


@given(st.integers(0, 10_000))
def test_a_replacement_is_taken_from_a_rack_that_keeps_the_copies_spread(seed: int) -> None:
    place_of = {"a1": "/a", "a2": "/a", "b1": "/b", "b2": "/b", "b3": "/b"}
    placement = SpreadPlacement(place_of.__getitem__, 2, Random(seed))
    assert placement.replacement(["b1", "a1"], 1, 2, ["a2", "b2", "b3"]) == "a2"
    assert placement.replacement(["b1", "a1"], 1, 2, ["b2", "b3"]) in ("b2", "b3")
    assert placement.replacement(["b1", "a1"], 1, 2, []) is None
    enforced = SpreadPlacement(place_of.__getitem__, 2, Random(seed), is_enforced=True)
    assert enforced.replacement(["b1", "a1"], 1, 2, ["b2", "b3"]) is None


def test_racks_that_are_enforced_refuse_a_ledger_and_are_not_needed_otherwise() -> None:
    place_of = {"a1": "/a", "a2": "/a"}
    assert len(SpreadPlacement(place_of.__getitem__, 2, Random(1)).ensemble(place_of, 2, 2)) == 2
    with pytest.raises(LedgerError, match="MinNumRacksPerWriteQuorum"):
        SpreadPlacement(place_of.__getitem__, 2, Random(1), is_enforced=True).ensemble(place_of, 2, 2)


@given(st.integers(0, 10_000))
def test_regions_are_spread_first_and_racks_within_them(seed: int) -> None:
    place_of = {f"{region}{rack}{number}": f"/{region}/{rack}" for region in "xy" for rack in "12" for number in "ab"}
    placement = SpreadPlacement(place_of.__getitem__, 2, Random(seed), is_nested=True)
    ensemble = placement.ensemble(place_of, 4, 4)
    assert len({name[0] for name in ensemble}) == 2
    assert len({place_of[name] for name in ensemble}) >= 3


def test_rack_data_is_pulsars_json_and_what_it_is_not_is_said() -> None:
    value = b'{"default": {"b1:3181": {"rack": "rack1", "hostname": "h"}, "b2:3181": {"rack": "/r/2/"}}, "other": {}}'
    assert parse_rack_data(value) == {"b1:3181": "/rack1", "b2:3181": "/r/2"}
    assert parse_rack_data(b"") == {}
    for bad in (
        b"[]",
        b"{",
        b'{"default": {"b1": {}}}',
        b'{"default": {"b1": {"rack": ""}}}',
        b'{"default": {"b1": {"rack": 1}}}',
    ):
        with pytest.raises(MalformedRackData, match="/bookies"):
            parse_rack_data(bad)


def test_new_ledgers_follow_the_rack_data_as_it_changes() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1, bookies=6)
        client = cluster.client()
        await client.initialise()
        store = MemoryStore(FixedClock(), cluster.shared, alone=False)
        names = list(cluster.bookies)
        for lone in (names[0], names[3]):
            groups = ",".join(f'"{name}": {{"rack": "/{"lone" if name == lone else "crowd"}"}}' for name in names)
            await store.commit([Put("/bookies", b"nonsense")])
            await store.commit([Put("/bookies", f'{{"default": {{{groups}}}}}'.encode())])
            await settle()
            for _ in range(5):
                writer = await client.create({})
                assert lone in metadata_of(cluster, writer.ledger_id).segments[0].bookies
        await client.close()
        await client.close()

    run(scenario())


def test_errors_within_an_interval_bring_quarantine_which_ends() -> None:
    quarantine = Quarantine(QuarantineRule(3, 60, 1800), Random(1))
    assert [quarantine.on_error("a", now) for now in (0, 1, 61, 62)] == [False] * 4, "never three within 60 s"
    assert quarantine.on_error("a", 63)
    assert not quarantine.on_error("a", 64)
    assert quarantine.holds("a", 1862)
    assert not quarantine.holds("a", 1863)
    assert not quarantine.holds("b", 63)
    nobody = Quarantine(None, Random(1))
    assert not any(nobody.on_error("a", 0) for _ in range(100))
    never = Quarantine(QuarantineRule(1, 60, 1800, 0.0), Random(1))
    assert not never.on_error("a", 0)


def test_a_bookie_in_quarantine_gets_no_new_ledger_unless_there_are_too_few_others() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1, bookies=3)
        client = cluster.client()
        await client.initialise()
        sick = next(iter(cluster.bookies))
        cluster.bookies[sick].failures["add"] = BookieCode.EIO
        threshold = BookKeeperSettings().bookkeeper_client_health_check_error_threshold_per_interval
        failures = 0
        while failures < threshold:
            writer = await client.create({})
            failures += sick in metadata_of(cluster, writer.ledger_id).segments[0].bookies
            await writer.append(batch(b"a"))
            await settle()
        for _ in range(10):
            writer = await client.create({})
            assert sick not in metadata_of(cluster, writer.ledger_id).segments[0].bookies
        del cluster.bookies[list(cluster.bookies)[1]]
        writer = await client.create({})
        assert sick in metadata_of(cluster, writer.ledger_id).segments[0].bookies
        await client.close()

    run(scenario())


@pytest.mark.parametrize("code", [BookieCode.EFENCED, BookieCode.EIO])
def test_neither_a_fence_nor_one_lost_connection_with_much_under_way_brings_a_bookie_into_quarantine(code: BookieCode) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        client = cluster.client()
        await client.initialise()
        writer = await client.create({})
        first = metadata_of(cluster, writer.ledger_id).segments[0].bookies[0]
        cluster.bookies[first].failures["add"] = code
        await asyncio.gather(*(writer.append(batch(b"a")) for _ in range(50)), return_exceptions=True)
        await settle()
        cluster.bookies[first].failures.clear()
        chosen = {name for _ in range(40) for name in await chosen_by(client, cluster)}
        assert chosen == set(cluster.bookies)
        await client.close()

    run(scenario())


async def chosen_by(client: BookKeeper, cluster: Cluster) -> Sequence[str]:
    writer = await client.create({})
    return metadata_of(cluster, writer.ledger_id).segments[0].bookies
