"""Placement over zones and upgrade domains."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.zone_placement import ZoneawarePlacement


@given(st.integers(0, 10_000), st.sampled_from([(3, 3), (6, 3), (4, 4), (5, 5)]))
def test_each_write_quorum_is_in_two_zones_and_two_upgrade_domains_of_a_zone_that_has_two_copies(
    seed: int, sizes: tuple[int, int]
) -> None:
    place_of = {f"{zone}{domain}{each}": f"/{zone}/{domain}" for zone in "abc" for domain in "12" for each in "xy"}
    places = {**place_of, "nowhere": "/default-zone/default-upgradedomain"}
    size, write_quorum = sizes
    placement = ZoneawarePlacement(places.__getitem__, 2, Random(seed))
    ensemble = placement.ensemble(places, size, write_quorum)
    assert len(set(ensemble)) == size
    assert "nowhere" not in ensemble
    check_zones(ensemble, write_quorum)
    index = seed % size
    rest = [name for name in places if name not in ensemble]
    found = placement.replacement(ensemble, index, write_quorum, rest)
    if found is not None:
        check_zones([*ensemble[:index], found, *ensemble[index + 1 :]], write_quorum)


def check_zones(ensemble: list[str] | tuple[str, ...], write_quorum: int) -> None:
    """Names begin with zone and upgrade domain."""
    for start in range(len(ensemble)):
        window = [ensemble[(start + step) % len(ensemble)] for step in range(write_quorum)]
        assert len({name[0] for name in window}) >= 2
        for zone in "abc":
            domains = [name[1] for name in window if name[0] == zone]
            assert len(domains) < 2 or len(set(domains)) == 2


def test_with_one_zone_left_no_ledger_is_made_and_nobody_replaced() -> None:
    place_of = {name: f"/{name[0]}/{name[1]}" for name in ("a1", "a2", "a3", "a4", "b1")}
    placement = ZoneawarePlacement(place_of.__getitem__, 2, Random(1))
    with pytest.raises(LedgerError, match="minNumZonesPerWriteQuorum"):
        placement.ensemble(["a1", "a2", "a3", "a4"], 3, 3)
    assert placement.replacement(["a1", "a2", "b1"], 2, 3, ["a3", "a4"]) is None
    assert placement.replacement(["a1", "a2", "b1"], 0, 3, ["a3", "a4"]) in ("a3", "a4")
