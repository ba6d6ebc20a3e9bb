"""The product's own licence, and those of the libraries that it stands on."""

import hashlib
import re
import tomllib

from tests.licences import ROOT, declared, locked, locks, rows, where

APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text that the Apache Software Foundation publishes."""
MAY_BE_USED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Zlib"),
    *("MPL-2.0", "LGPL-2.1-or-later"),  # used as they are, through their import names
    "LicenseRef-Public-Domain",
}
MAY_BE_RUN = {"GPL-3.0-or-later"}
"""Licences of programs that only make a release: nothing of them gets into what is released."""


def test_the_licence_is_the_official_text_and_the_project_names_it() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert [name for name in project["license-files"] if not (ROOT / name).is_file()] == []


def test_the_page_lists_every_locked_library_and_no_other() -> None:
    pinned = set().union(*map(locked, locks()))
    assert {name: places for name, (_, _, places) in rows().items()} == {name: where(name) for name in pinned}


def test_the_page_repeats_what_each_installed_library_states() -> None:
    found = {name: (statement, declared(name)) for name, (_, statement, _) in rows().items()}
    assert {name: both for name, both in found.items() if both[1] is not None and both[0] != both[1]} == {}
    assert len([name for name, both in found.items() if both[1] is not None]) > len(locked(ROOT / "requirements.lock"))


def test_every_licence_is_one_that_the_product_may_use() -> None:
    for name, (spdx, _, places) in rows().items():
        permitted = MAY_BE_USED | (MAY_BE_RUN if places == "release" else set())
        assert set(re.split(r" (?:AND|OR) ", spdx)) <= permitted, name
