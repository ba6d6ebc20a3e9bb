"""The bookie's settings: Apache's keys, and what cannot be."""

import dataclasses
from pathlib import Path

import pytest

from bookie.settings import BookieSettings
from ports.settings import BadSetting, build_settings, fold

CONF = Path(__file__).parents[2] / "conf"


def test_every_field_is_a_key_of_apaches_or_one_of_our_own() -> None:
    lists = ("apache-bookkeeper-keys.txt", "own-keys.txt")
    known = {fold(key) for name in lists for key in (CONF / name).read_text().split()}
    assert [field.name for field in dataclasses.fields(BookieSettings) if fold(field.name) not in known] == []


def test_values_come_from_apaches_keys() -> None:
    settings = build_settings(
        BookieSettings,
        {
            "journalDirectories": "/j",
            "ledgerDirectories": "/l",
            "dbStorage_writeCacheMaxSizeMb": "8",
            "journalSyncData": "false",
        },
    )
    assert (settings.journal_directory, settings.ledger_directory) == ("/j", "/l")
    assert settings.table_bytes_max == 4 << 20


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("journalDirectories", "/a,/a"),
        ("ledgerDirectories", ""),
        ("minorCompactionThreshold", "0.9"),
        ("diskUsageWarnThreshold", "0"),
        ("journalAlignmentSize", "1000"),
        ("diskUsageThreshold", "1.5"),
        ("diskUsageLwmThreshold", "0.99"),
        ("flushInterval", "0"),
    ],
)
def test_invalid_settings_are_refused(key: str, value: str) -> None:
    with pytest.raises(BadSetting):
        build_settings(BookieSettings, {key: value})
