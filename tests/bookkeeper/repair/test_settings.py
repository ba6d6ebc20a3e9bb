"""Settings of repair that cannot be are refused with Apache's key; zeros that mean "never" are taken."""

import pytest

from bookkeeper.repair.settings import RepairSettings
from ports.settings import BadSetting, build_settings

LEAST = {
    "auditorPeriodicBookieCheckInterval": 0,
    "auditorPeriodicCheckInterval": 0,
    "auditorPeriodicPlacementPolicyCheckInterval": 0,
    "lostBookieRecoveryDelay": 0,
    "openLedgerRereplicationGracePeriod": 0,
    "lockReleaseOfFailedLedgerGracePeriod": 0,
    "rwRereplicateBackoffMs": 0,
    "auditorLedgerVerificationPercentage": 0,
    "rereplicationEntryBatchSize": 1,
    "auditorMaxNumberOfConcurrentOpenLedgerOperations": 1,
}


@pytest.mark.parametrize(("key", "least"), LEAST.items())
def test_a_number_below_the_least_is_refused_with_its_key(key: str, least: int) -> None:
    build_settings(RepairSettings, {key: str(least)})
    with pytest.raises(BadSetting, match=key):
        build_settings(RepairSettings, {key: str(least - 1)})


def test_a_percentage_is_at_most_100() -> None:
    build_settings(RepairSettings, {"auditorLedgerVerificationPercentage": "100"})
    with pytest.raises(BadSetting, match="auditorLedgerVerificationPercentage"):
        build_settings(RepairSettings, {"auditorLedgerVerificationPercentage": "101"})


def test_a_rate_below_0_is_no_limit() -> None:
    assert build_settings(RepairSettings, {"replicationRateByBytes": "-1"}).replication_rate_by_bytes == -1
