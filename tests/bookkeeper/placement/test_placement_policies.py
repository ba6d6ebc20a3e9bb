"""Placement by zone, by isolation group and by free disk, and the settings that ask for it."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.disk_weights import DiskWeights, weights_by_free_space
from bookkeeper.placement.isolation import IsolationGroups, MalformedIsolation, allowed, groups_of_ledger
from bookkeeper.placement.rack_placement import AnyPlace, SpreadPlacement, choose_ensemble
from bookkeeper.placement.zone_placement import ZoneawarePlacement
from bookkeeper.ports import BookieClient, DiskSpace
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore
from metadata.store import Put
from ports.settings import BadSetting, build_settings
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, FixedClock, batch, run, settle
from tests.bookkeeper.write.test_ledger_ensembles import metadata_of
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode, BookieError

POLICY = "bookkeeper_ensemblePlacementPolicy"

# Zones


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


# Isolation groups


MEMBERS = {"one": {"a", "b"}, "two": {"b", "c", "d"}, "three": {"e"}}
ALL = ["a", "b", "c", "d", "e", "free"]


@pytest.mark.parametrize(
    ("primary", "secondary", "size", "found"),
    [
        (("one",), (), 2, "ab"),
        (("one",), ("two",), 2, "ab"),
        (("one",), ("two",), 3, "abcd"),
        (("one", "three"), (), 3, "abe"),
        (("one",), (), 3, "ab+"),
        (("one",), ("three",), 4, "abe+"),
        (("unknown",), (), 1, "+"),
        (("*",), (), 1, "abcde+"),
    ],
)
def test_the_primary_groups_come_first_then_the_secondary_ones_then_those_without_a_group(
    primary: tuple[str, ...], secondary: tuple[str, ...], size: int, found: str
) -> None:
    groups = IsolationGroups(primary, secondary)
    assert allowed(ALL, groups, MEMBERS, size) == [name for name in ALL if name in found or ("+" in found and name == "free")]


def test_without_groups_everybody_is_allowed() -> None:
    assert allowed(ALL, None, MEMBERS, 1) == ALL
    assert allowed(ALL, IsolationGroups(("one",)), {}, 1) == ALL


def custom_metadata(primary: object, secondary: object = None) -> Mapping[str, bytes]:
    properties = {"isolationBookieGroups": primary, "secondaryIsolationBookieGroups": secondary}
    name = "org.apache.pulsar.bookie.rackawareness.IsolatedBookieEnsemblePlacementPolicy"
    return {"EnsemblePlacementPolicyConfig": json.dumps({"policyClass": name, "properties": properties}).encode()}


def test_a_ledger_may_bring_groups_of_its_own() -> None:
    assert groups_of_ledger({}) is None
    assert groups_of_ledger(custom_metadata("one,two", "three")) == IsolationGroups(("one", "two"), ("three",))
    assert groups_of_ledger(custom_metadata(["one"], "")) == IsolationGroups(("one",), ())
    for value in (b"{", b"[]", b'{"properties": 7}'):
        with pytest.raises(MalformedIsolation, match="EnsemblePlacementPolicyConfig"):
            groups_of_ledger({"EnsemblePlacementPolicyConfig": value})


async def isolated(cluster: Cluster, members: Mapping[str, list[str]], *primary: str) -> BookKeeper:
    """A client that keeps to these groups."""
    store = MemoryStore(FixedClock(), cluster.shared, alone=False)
    racks = {group: {name: {"rack": "/rack"} for name in names} for group, names in members.items()}
    await store.commit([Put("/bookies", json.dumps(racks).encode())])
    sizes = cluster.settings.managed_ledger_default_ensemble_size
    settings = BookKeeperSettings(sizes, sizes, 1, bookkeeper_client_isolation_groups=primary)
    client = BookKeeper(cluster.bookies, store, settings, Random(1))
    await client.initialise()
    return client


def test_ledgers_are_made_and_moved_within_their_groups() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1, bookies=6)
        names = list(cluster.bookies)
        client = await isolated(cluster, {"one": names[:3], "two": names[3:]}, "one")
        for _ in range(10):
            writer = await client.create({})
            first = metadata_of(cluster, writer.ledger_id).segments[0].bookies
            assert set(first) < set(names[:3])
            other = await client.create(custom_metadata("two"))
            assert set(metadata_of(cluster, other.ledger_id).segments[0].bookies) < set(names[3:])
        for ledger, own in ((writer, names[:3]), (other, names[3:])):
            before = metadata_of(cluster, ledger.ledger_id).segments[0].bookies
            cluster.bookies[before[0]].failures["add"] = BookieCode.EIO
            await ledger.append(batch(b"a"))
            await settle()
            after = metadata_of(cluster, ledger.ledger_id).segments[-1].bookies
            assert set(after) < set(own)
            assert before[0] not in after
        await client.close()

    run(scenario())


# Free disk


def test_a_weight_is_the_free_space_with_a_bound_above_and_one_below() -> None:
    assert weights_by_free_space({"a": 10, "b": 20, "c": 30}) == {"a": 10, "b": 20, "c": 30}
    assert weights_by_free_space({"a": 10, "b": 20, "c": 3000}) == {"a": 10, "b": 20, "c": 60}
    assert weights_by_free_space({"a": 0, "b": 20, "c": 30}) == {"a": 20, "b": 20, "c": 30}
    assert weights_by_free_space({"a": 0, "b": 0}) == {"a": 1, "b": 1}
    assert weights_by_free_space({"a": 0, "b": 0, "c": 5}) == {"a": 5, "b": 5, "c": 5}
    assert weights_by_free_space({}) == {}


@pytest.mark.parametrize("scale", [1.0, 1e12])
def test_bookies_are_chosen_as_often_as_their_weights_say(scale: float) -> None:
    rng, weights = Random(1), {"a": 1 * scale, "b": 2 * scale, "c": 3 * scale}
    drawn = Counter(choose_ensemble(weights, 1, rng, weights.__getitem__)[0] for _ in range(6000))
    assert [drawn[name] for name in "abc"] == pytest.approx([1000, 2000, 3000], rel=0.1)
    replaced = Counter(AnyPlace(rng, weights.__getitem__).replacement((), 0, 1, list(weights)) for _ in range(6000))
    assert [replaced[name] for name in "abc"] == pytest.approx([1000, 2000, 3000], rel=0.1)
    spread = SpreadPlacement({"a": "/x", "b": "/y", "c": "/y"}.__getitem__, 2, rng, weight_of=weights.__getitem__)
    partner = Counter(name for _ in range(3000) for name in spread.ensemble(weights, 2, 2) if name != "a")
    assert partner["c"] > 1.2 * partner["b"], "as the racks say first, then as the weights do"


class Disk(FakeBookie):
    """Tells how much is free; `asked` times."""

    def __init__(self, free_bytes: int) -> None:
        super().__init__()
        self.free_bytes, self.asked = free_bytes, 0

    async def disk_space(self) -> DiskSpace:
        self.asked += 1
        if "disk_space" in self.failures:
            raise BookieError(BookieCode.EIO, -1)
        return DiskSpace(1000, self.free_bytes)

    add_deferred = force = write_lac = read_lac = wait_lac = list_entries = FakeBookie.last_entry_id


def test_bookies_are_asked_for_their_disk_again_and_new_ones_soon() -> None:
    async def scenario() -> None:
        disks = {"a": Disk(10), "b": Disk(20), "c": Disk(20)}
        disks["c"].failures["disk_space"] = BookieCode.EIO
        bookies: dict[str, BookieClient] = {**disks, "plain": FakeBookie()}
        weights = DiskWeights(bookies, interval_seconds=3600, retry_seconds=60)
        assert weights.weight_of("a") == weights.weight_of("b") == 1
        weights.open()
        await asyncio.sleep(10)
        assert [weights.weight_of(name) for name in ("a", "b", "c", "plain")] == [10, 20, 10, 10]
        disks["c"].failures.clear()
        bookies["d"] = disks["d"] = Disk(30)
        await asyncio.sleep(60)
        assert [weights.weight_of(name) for name in ("c", "d")] == [20, 30]
        disks["a"].free_bytes = 15
        await asyncio.sleep(3600)
        assert weights.weight_of("a") == 15
        assert [disks[name].asked for name in "abcd"] == [2, 2, 3, 2]
        await weights.close()
        await weights.close()

    on_loop(lambda _: scenario())


# Settings


def settings_of(**values: str) -> BookKeeperSettings:
    sizes = {"managedLedgerDefaultEnsembleSize": "3", "managedLedgerDefaultWriteQuorum": "3"}
    return build_settings(BookKeeperSettings, {**sizes, **values})


def test_a_policy_is_chosen_by_its_class_or_by_its_own_keys() -> None:
    rng, store = Random(1), MemoryStore(FixedClock())
    package = "org.apache.bookkeeper.client."
    chosen = {
        name: settings.placement(settings.racks_of(store), rng)
        for name in ("Rackaware", "RegionAware", "Zoneaware", "Default")
        for settings in [settings_of(**{POLICY: f"{package}{name}EnsemblePlacementPolicy"})]
    }
    assert [type(each) for each in chosen.values()] == [SpreadPlacement, SpreadPlacement, ZoneawarePlacement, AnyPlace]
    assert isinstance(settings_of().placement(settings_of().racks_of(store), rng), SpreadPlacement)
    with pytest.raises(BadSetting, match=r"ensemblePlacementPolicy=Nonsense: expected Rackaware"):
        settings_of(**{POLICY: "Nonsense"})
    with pytest.raises(BadSetting, match="multiple"):
        settings_of(**{POLICY: "ZoneawareEnsemblePlacementPolicy", "bookkeeper_minNumZonesPerWriteQuorum": "3"})
    groups = settings_of(bookkeeperClientIsolationGroups="one,two", bookkeeperClientSecondaryIsolationGroups="three")
    assert groups.isolation == IsolationGroups(("one", "two"), ("three",))
    assert settings_of().isolation is None
