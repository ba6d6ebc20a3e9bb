"""Isolation groups of bookies."""

import json
from collections.abc import Mapping
from random import Random

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.placement.isolation import IsolationGroups, MalformedIsolation, allowed, groups_of_ledger
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore
from metadata.store import Put
from tests.bookkeeper.fake_bookies import Cluster, FixedClock, batch, run, settle
from tests.bookkeeper.write.test_ledger_ensembles import metadata_of
from wire.bookie.codes import BookieCode

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
