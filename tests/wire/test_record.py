"""Records behave as frozen dataclasses do."""

from dataclasses import dataclass, field, fields, replace

import pytest

from wire.record import record


@dataclass(frozen=True, slots=True)
class Plain:
    """One and the other."""

    one: int
    other: tuple[int, ...] = ()
    seen: int = field(default=0, compare=False, repr=False)


@record(frozen=True, slots=True)
class Quick:
    """One and the other."""

    one: int
    other: tuple[int, ...] = ()
    seen: int = field(default=0, compare=False, repr=False)


@record(frozen=True, slots=True)
class Nothing:
    """No fields."""


def test_they_compare_and_hash_by_what_is_compared() -> None:
    for kind in (Plain, Quick):
        assert kind(1, (2,), 3) == kind(1, (2,), 4)
        assert kind(1) != kind(2)
        assert hash(kind(1, (2,), 3)) == hash(kind(1, (2,), 4))
    assert Plain(1) != Quick(1)  # type: ignore[comparison-overlap]
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


def test_they_read_alike_and_take_replacements() -> None:
    assert repr(Quick(1, (2,))) == repr(Plain(1, (2,))).replace("Plain", "Quick")
    assert replace(Quick(1), one=2) == Quick(2)
    assert [each.name for each in fields(Quick)] == ["one", "other", "seen"]
    match Quick(1, (2,)):
        case Quick(one, other):
            assert (one, other) == (1, (2,))


def test_they_have_slots_and_no_defaults_for_what_must_be_given() -> None:
    assert not hasattr(Quick(1), "__dict__")
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]
