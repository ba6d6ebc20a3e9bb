"""Placement by zone, by isolation group and by free disk, and the settings that ask for it."""

from random import Random

import pytest

from bookkeeper.placement.isolation import IsolationGroups
from bookkeeper.placement.rack_placement import AnyPlace, SpreadPlacement
from bookkeeper.placement.zone_placement import ZoneawarePlacement
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore
from ports.settings import BadSetting, build_settings
from tests.bookkeeper.fake_bookies import FixedClock

POLICY = "bookkeeper_ensemblePlacementPolicy"


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
