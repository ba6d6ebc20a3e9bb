"""Settings of the ledger client: quorums that cannot be are refused, and each key that names a policy counts in its turn."""

from random import Random

import pytest

from bookkeeper.placement.quarantine import QuarantineRule
from bookkeeper.placement.rack_placement import AnyPlace
from bookkeeper.settings import ANYWHERE, RACKS, REGIONS, ZONES, BookKeeperSettings
from metadata.memory import MemoryStore
from ports.settings import BadSetting, build_settings
from tests.bookkeeper.fake_bookies import FixedClock


def settings_of(**values: str) -> BookKeeperSettings:
    return build_settings(BookKeeperSettings, values)


@pytest.mark.parametrize(("ensemble", "write", "ack"), [(1, 2, 1), (2, 1, 2), (2, 2, 0), (3, 2, 3)])
def test_quorums_that_do_not_fit_one_another_are_refused(ensemble: int, write: int, ack: int) -> None:
    with pytest.raises(
        ValueError, match=f"managedLedgerDefaultEnsembleSize={ensemble}, -WriteQuorum={write}, -AckQuorum={ack}"
    ):
        BookKeeperSettings(ensemble, write, ack)


def test_a_digest_that_is_none_of_bookkeepers_is_refused() -> None:
    with pytest.raises(BadSetting, match="managedLedgerDigestType=MD5: expected CRC32, MAC, CRC32C, DUMMY"):
        settings_of(managedLedgerDigestType="MD5")


@pytest.mark.parametrize(
    ("quorum", "add", "seconds"), [("0", "0", 0), ("5", "0", 5), ("0", "7", 7), ("5", "7", 5), ("9", "7", 7)]
)
def test_the_shorter_time_of_an_append_counts_and_0_is_none(quorum: str, add: str, seconds: int) -> None:
    settings = settings_of(bookkeeperAddEntryQuorumTimeoutSec=quorum, managedLedgerAddEntryTimeoutSeconds=add)
    assert settings.add_timeout_seconds == seconds


@pytest.mark.parametrize(
    ("named", "regions", "racks", "policy"),
    [
        ("", "false", "true", RACKS),
        ("", "true", "true", REGIONS),
        ("", "false", "false", ANYWHERE),
        (f"org.apache.bookkeeper.client.{ANYWHERE}", "true", "true", ANYWHERE),
        (REGIONS, "false", "false", REGIONS),
    ],
)
def test_a_policy_by_name_counts_before_regions_and_these_before_racks(
    named: str, regions: str, racks: str, policy: str
) -> None:
    settings = settings_of(
        bookkeeperEnsemblePlacementPolicy=named,
        bookkeeperClientRegionawarePolicyEnabled=regions,
        bookkeeperClientRackawarePolicyEnabled=racks,
    )
    assert settings.policy == policy


@pytest.mark.parametrize(("ensemble", "write", "zones"), [(5, 3, 2), (3, 3, 3), (4, 2, 2)])
def test_zones_need_an_ensemble_of_whole_quorums_and_a_copy_more_than_zones(ensemble: int, write: int, zones: int) -> None:
    with pytest.raises(BadSetting, match="must be a multiple of"):
        settings_of(
            managedLedgerDefaultEnsembleSize=str(ensemble),
            managedLedgerDefaultWriteQuorum=str(write),
            managedLedgerDefaultAckQuorum="1",
            bookkeeperEnsemblePlacementPolicy=ZONES,
            bookkeeperMinNumZonesPerWriteQuorum=str(zones),
        )


def test_racks_are_read_only_where_copies_are_spread_or_kept_apart() -> None:
    store = MemoryStore(FixedClock())
    alone = {f"managedLedgerDefault{size}": "1" for size in ("EnsembleSize", "WriteQuorum", "AckQuorum")}
    assert settings_of().racks_of(store) is not None
    assert settings_of(**alone).racks_of(store) is None
    assert settings_of(**alone, bookkeeperClientIsolationGroups="one").racks_of(store) is not None
    assert isinstance(settings_of(**alone).placement(None, Random(1)), AnyPlace)


def test_without_the_health_check_no_bookie_is_quarantined() -> None:
    assert settings_of(bookkeeperClientHealthCheckEnabled="false").quarantine_rule is None
    assert settings_of().quarantine_rule == QuarantineRule(5, 60, 1800, 1.0)


def test_secondary_groups_alone_isolate_nothing() -> None:
    assert settings_of(bookkeeperClientSecondaryIsolationGroups="two").isolation is None
