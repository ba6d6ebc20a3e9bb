"""Ways back to an owner: what they call, and that they do not keep it."""

import gc
import weakref

import pytest

from ports.loop.owner import ask, tell


class _Owner:
    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []

    def add(self, number: int, text: str = "") -> int:
        self.told.append((number, text))
        return len(self.told)


def test_an_owner_is_told_with_all_arguments_and_asked_for_its_answer() -> None:
    owner = _Owner()
    tell(owner.add)(1, text="one")
    assert ask(owner.add)(2) == 2
    assert owner.told == [(1, "one"), (2, "")]


def test_neither_way_keeps_its_owner() -> None:
    owner = _Owner()
    ways = tell(owner.add), ask(owner.add)
    gone = weakref.ref(owner)
    gc.disable()
    try:
        del owner
        assert gone() is None
    finally:
        gc.enable()
    ways[0](1)
    with pytest.raises(ReferenceError, match="add: its object is gone"):
        ways[1](1)
