"""Paths of ledgers."""

import pytest

from bookkeeper.ledger_metadata.paths import ledger_path, parents_of


@pytest.mark.parametrize(
    ("ledger_id", "path"),
    [
        (0, "/00/0000/L0000"),
        (7, "/00/0000/L0007"),
        (1234567890, "/12/3456/L7890"),
        (2147483646, "/21/4748/L3646"),
        (2147483647, "/000/0000/0021/4748/L3647"),
        (2147483648, "/000/0000/0021/4748/L3648"),
        (9223372036854775807, "/922/3372/0368/5477/L5807"),
    ],
)
def test_ledgers_are_where_apache_has_them(ledger_id: int, path: str) -> None:
    assert ledger_path(ledger_id) == "/ledgers" + path


def test_the_parents_of_a_ledger_are_told_deepest_first() -> None:
    assert parents_of(7) == ["/ledgers/00/0000", "/ledgers/00"]
