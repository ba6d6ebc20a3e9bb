"""docs/configuration.md says what the dataclasses say."""

import dataclasses

from bookkeeper.repair.settings import RepairSettings
from cli.configuration_doc import DIFFERENT, PAGE, page
from cli.standalone import SETTINGS
from ports.settings import fold


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == page(), "write it again: python -m cli.configuration_doc"


def test_every_difference_is_of_a_setting_that_is_in_effect() -> None:
    in_effect = {fold(field.name) for cls in (*SETTINGS, RepairSettings) for field in dataclasses.fields(cls)}
    assert [key for key in DIFFERENT if fold(key) not in in_effect] == []
