"""The tables of docs/what-is-deleted.md: each row names a test, and each test that is named is there."""

import re
from pathlib import Path

from tests.started_process import ROOT

PAGE = "docs/what-is-deleted.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def page() -> str:
    return (ROOT / PAGE).read_text()


def rows() -> list[str]:
    """Rows of the tables whose last column is the test."""
    found, is_tested = [], False
    for text in page().splitlines():
        if not text.startswith("|"):
            is_tested = False
        elif text.endswith("| test |"):
            is_tested = True
        elif is_tested and not text.startswith("| ---"):
            found.append(text)
    return found


def test_each_way_in_which_something_goes_has_a_test() -> None:
    assert len(rows()) > 30
    assert [row for row in rows() if not NAMED.search(row.rsplit("|", 2)[1])] == []


def test_each_test_that_is_named_is_there() -> None:
    names = NAMED.findall(page())
    assert len(names) == page().count("::test_")
    missing = [f"{path}::{name}" for path, name in names if not _has_test(ROOT / path, name)]
    assert missing == []


def test_a_user_finds_the_page() -> None:
    readers = [
        path for path in ("README.md", "docs/architecture.md") if PAGE.removeprefix("docs/") in (ROOT / path).read_text()
    ]
    assert readers == ["README.md", "docs/architecture.md"]


def _has_test(path: Path, name: str) -> bool:
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE) is not None
