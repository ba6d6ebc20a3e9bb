"""Layouts of ledgers in the metadata tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger_metadata.layouts import (
    FLAT,
    HIERARCHICAL,
    LAYOUTS,
    LEGACY_HIERARCHICAL,
    LONG_HIERARCHICAL,
    LedgerLayout,
    UnknownLayout,
    parse_layout,
)
from metadata.store import MetadataError


@pytest.mark.parametrize(
    ("layout", "ledger_id", "path"),
    [
        (HIERARCHICAL, 2147483646, "/21/4748/L3646"),
        (HIERARCHICAL, 2147483647, "/000/0000/0021/4748/L3647"),
        (LONG_HIERARCHICAL, 7, "/000/0000/0000/0000/L0007"),
        (LEGACY_HIERARCHICAL, 1234567890, "/12/3456/L7890"),
        (FLAT, 7, "/L0000000007"),
    ],
)
def test_each_layout_has_ledgers_where_apache_has_them(layout: LedgerLayout, ledger_id: int, path: str) -> None:
    assert layout.path("/ledgers", ledger_id) == "/ledgers" + path
    assert layout.id_at(path.removeprefix("/")) == ledger_id


@given(st.sampled_from(LAYOUTS), st.integers(0, (1 << 63) - 1))
def test_a_path_tells_its_ledger_or_has_none(layout: LedgerLayout, number: int) -> None:
    ledger_id = number % layout.id_limit
    path = layout.relative_path(ledger_id)
    assert layout.id_at(path) == ledger_id
    assert layout.id_at(f"{path}0") is None
    assert all(layout.path("/l", ledger_id).startswith(f"{parent}/") for parent in layout.parents("/l", ledger_id))


def test_nodes_beside_the_ledgers_are_no_ledgers() -> None:
    others = ("LAYOUT", "INSTANCEID", "available/b1:3181", "idgen/ID-0000000001", "000/0000/0000/0000/L0007", "00/0000/L007")
    assert [HIERARCHICAL.id_at(path) for path in others] == [None] * len(others)


def test_layouts_are_known_by_their_text_and_ids_beyond_them_are_refused() -> None:
    assert HIERARCHICAL.text == b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
    for layout in LAYOUTS:
        assert parse_layout(layout.text) is layout
    with pytest.raises(UnknownLayout, match="Strange"):
        parse_layout(b"2\norg.apache.bookkeeper.meta.StrangeLedgerManagerFactory:1")
    with pytest.raises(MetadataError, match="flat layout has ids from 0 to 2147483646"):
        FLAT.path("/ledgers", 1 << 31)
