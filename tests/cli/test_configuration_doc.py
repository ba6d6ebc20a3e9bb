"""docs/configuration.md says what the dataclasses say."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from bookkeeper.repair.settings import RepairSettings
from cli.configuration.loading import known_keys
from cli.configuration.notes import DIFFERENT, form_of, note_of
from cli.configuration.report import SETTINGS as PROCESSES
from cli.configuration_doc import PAGE, page
from cli.standalone.server import SETTINGS
from ports.settings import fold


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == page(), "write it again: python -m cli.configuration_doc"


def test_every_difference_is_of_a_setting_that_is_in_effect() -> None:
    in_effect = {fold(field.name) for cls in (*SETTINGS, RepairSettings) for field in dataclasses.fields(cls)}
    assert [key for key in DIFFERENT if fold(key) not in in_effect] == []


def test_every_setting_that_takes_effect_is_explained_in_its_dataclass() -> None:
    """Each has a sentence of its own, as `config explain` and the page show it."""
    classes = dict.fromkeys(cls for settings in PROCESSES.values() for cls in settings)
    silent = [
        f"{cls.__name__}.{field.name}" for cls in classes for field in dataclasses.fields(cls) if not note_of(cls, field.name)
    ]
    assert silent == []


def test_no_row_of_the_page_is_blank() -> None:
    rows = [row.strip("|").split("|") for row in PAGE.read_text().replace("\\|", "").splitlines() if row.startswith("| ")]
    assert [row[0].strip() for row in rows if not row[-1].strip()] == []
    assert len(rows) > 400


def test_the_form_of_a_value_names_its_unit() -> None:
    forms = {field.name: form_of(key, cls, field.name) for key, cls, field in every_field()}
    assert forms["flush_interval"] == "a whole number, in milliseconds"
    assert forms["default_retention_time_in_minutes"] == "a whole number, in minutes"
    assert forms["managed_ledger_default_ensemble_size"] == "a whole number"
    assert forms["authentication_enabled"] == "true or false"
    assert forms["broker_service_port_tls"] == "a whole number, or empty"
    assert forms["super_user_roles"] == "a list, separated by commas"
    assert forms["http_requests_max_per_second"] == "a number per second"


def every_field() -> Iterator[tuple[str, type, dataclasses.Field[Any]]]:
    spelling = {fold(key): key for key in known_keys()}
    for cls in dict.fromkeys(cls for settings in PROCESSES.values() for cls in settings):
        yield from ((spelling[fold(field.name)], cls, field) for field in dataclasses.fields(cls))
