"""Settings of managed ledgers that cannot be are refused with Apache's key."""

import pytest

from managed_ledger.settings import BROKER_ENTRY_METADATA_INTERCEPTORS, ManagedLedgerSettings
from ports.settings import BadSetting, build_settings, fold

LEAST_1 = (
    "managedLedgerMaxEntriesPerLedger",
    "managedLedgerMaxSizePerLedgerMbytes",
    "managedLedgerCursorMaxEntriesPerLedger",
    "managedLedgerCursorRolloverTimeInSeconds",
    "managedLedgerCursorPositionFlushSeconds",
    "managedLedgerCacheEvictionTimeThresholdMillis",
    "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
)
WRONG = (
    ("managedCursorHoleCacheSizeMB", "-1"),
    ("managedLedgerDefaultMarkDeleteRateLimit", "0"),
    ("managedLedgerCacheEvictionWatermark", "0"),
    ("managedLedgerCacheEvictionWatermark", "1.1"),
    ("managedLedgerInfoCompressionType", "BROTLI"),
    ("managedCursorInfoCompressionType", "lz4"),
    ("brokerEntryMetadataInterceptors", "com.example.Interceptor"),
)


def settings_of(**values: str) -> ManagedLedgerSettings:
    return build_settings(ManagedLedgerSettings, values)


@pytest.mark.parametrize("key", LEAST_1)
def test_a_number_that_must_be_1_at_least_is_refused_with_its_key(key: str) -> None:
    settings_of(**{key: "1"})
    with pytest.raises(BadSetting) as refused:
        settings_of(**{key: "0"})
    assert fold(key) in fold(str(refused.value))


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_value_that_cannot_be_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(BadSetting, match=key):
        settings_of(**{key: value})


@pytest.mark.parametrize(
    ("least", "most", "fits"), [(10, 240, True), (10, 10, True), (11, 10, False), (10, 0, True), (-1, 0, False)]
)
def test_the_least_age_of_a_ledger_is_below_the_greatest_which_may_be_none(least: int, most: int, fits: bool) -> None:
    ages = {
        "managedLedgerMinLedgerRolloverTimeMinutes": str(least),
        "managedLedgerMaxLedgerRolloverTimeMinutes": str(most),
    }
    if fits:
        settings_of(**ages)
    else:
        with pytest.raises(BadSetting, match="managedLedgerMinLedgerRolloverTimeMinutes"):
            settings_of(**ages)


def test_each_interceptor_turns_one_stamp_on() -> None:
    timestamp, index = BROKER_ENTRY_METADATA_INTERCEPTORS
    stamps = [
        (found.stamps_broker_timestamp, found.stamps_index)
        for names in ("", timestamp, index, f"{timestamp},{index}")
        for found in [settings_of(brokerEntryMetadataInterceptors=names)]
    ]
    assert stamps == [(False, False), (True, False), (False, True), (True, True)]
