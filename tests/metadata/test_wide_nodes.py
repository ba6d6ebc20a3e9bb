"""A node with very many children keeps their names in order: no reader waits while 100,000 of them are sorted."""

import pytest

from metadata.paths import ROOT
from metadata.store import Delete, Put
from metadata.tree import WIDE, Node, Tree


def _names(count: int) -> list[str]:
    """Names in no order."""
    return [f"t{number * 7919 % count}" for number in range(count)]


def _filled(count: int) -> Tree:
    tree = Tree()
    tree.apply([Put(f"/wide/{name}", b"") for name in _names(count)], tree.open_session(), 0)
    return tree


def _loaded(count: int) -> Tree:
    return Tree.loaded(
        [(ROOT + path, Node(b"", 0, 0, 0)) for path in ("wide", *(f"wide/{each}" for each in _names(count)))], {}
    )


@pytest.mark.parametrize("made", [_filled, _loaded])
@pytest.mark.parametrize("count", [WIDE - 1, WIDE, WIDE + 1, 3 * WIDE])
def test_children_are_in_order_however_many_there_are(made: object, count: int) -> None:
    tree = _filled(count) if made is _filled else _loaded(count)
    assert tree.children("/wide") == sorted(set(_names(count)))
    tree.apply([Delete(f"/wide/{name}") for name in _names(count)[: count // 2]], tree.open_session(), 0)
    assert tree.children("/wide") == sorted(_names(count)[count // 2 :])
    tree.check_invariants()
    tree.apply([Delete(f"/wide/{name}") for name in _names(count)[count // 2 :]], tree.open_session(), 0)
    assert tree.children("/wide") == []


def test_the_names_of_a_wide_node_are_not_put_in_order_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = _filled(8 * WIDE)
    expected = sorted(_names(8 * WIDE))
    monkeypatch.setattr("metadata.tree.sorted", None, raising=False)
    assert tree.children("/wide") == expected
