"""Bookies for a ledger: those in quarantine last, those that are away only where too few are here, and isolation always."""

from random import Random

import pytest

from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.isolation import IsolationGroups
from bookkeeper.placement.quarantine import Quarantine, QuarantineRule
from bookkeeper.placement.rack_placement import AnyPlace
from bookkeeper.ports import BookieClient
from tests.bookkeeper.fake_bookies import FakeBookie
from tests.simulation.worlds import World, run

NAMES = ("a", "b", "c", "d")


def candidates(names: tuple[str, ...] = NAMES, isolation: IsolationGroups | None = None) -> Candidates:
    """Candidates of which one error puts a bookie in quarantine for a minute."""
    bookies: dict[str, BookieClient] = {name: FakeBookie() for name in names}
    quarantine = Quarantine(QuarantineRule(1, 60.0, 60.0), Random(1))
    groups = {"one": {"a", "b"}, "two": {"c"}}
    return Candidates(bookies, AnyPlace(Random(1)), quarantine, isolation, lambda: groups)


def test_bookies_in_quarantine_are_chosen_only_where_too_few_others_are_there() -> None:
    async def scenario(world: World) -> None:
        some = candidates()
        some.on_error("a")
        assert all("a" not in some.ensemble(3, 3) for _ in range(20))
        assert set(some.ensemble(4, 4)) == set(NAMES)

    run(scenario)


def test_a_bookie_in_quarantine_replaces_another_only_where_nobody_else_can() -> None:
    async def scenario(world: World) -> None:
        some = candidates(("a", "b", "c"))
        some.on_error("c")
        assert some.replacement(("x", "a"), 0, 2, {"a", "x"}) == "b"
        assert some.replacement(("x", "a", "b"), 0, 2, {"a", "b", "x"}) == "c"
        assert some.replacement(("a", "b", "c"), 0, 2, {"a", "b", "c"}) is None

    run(scenario)


def test_a_bookie_is_doubtful_in_quarantine_or_when_it_takes_no_entries() -> None:
    async def scenario(world: World) -> None:
        some = candidates()
        some.on_error("a")
        assert [some.is_doubtful(name) for name in ("a", "b", "gone")] == [True, False, True]

    run(scenario)


def test_a_ledger_stays_in_its_groups_also_when_a_bookie_is_replaced() -> None:
    async def scenario(world: World) -> None:
        some = candidates(isolation=IsolationGroups(("one",), ("two",)))
        assert all(set(some.ensemble(2, 2)) == {"a", "b"} for _ in range(20))
        assert some.replacement(("a", "b"), 0, 2, {"a", "b"}) in ("c", None)

    run(scenario)


def test_groups_of_a_ledger_that_cannot_be_read_leave_those_of_the_settings(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        some = candidates(isolation=IsolationGroups(("one",)))
        assert set(some.ensemble(2, 2, {"EnsemblePlacementPolicyConfig": b"{"})) == {"a", "b"}

    run(scenario)
    assert "isolation groups of a ledger cannot be read" in caplog.text


def test_an_ensemble_has_the_fewest_absent_bookies_and_an_ack_quorum_of_present_ones() -> None:
    async def scenario(world: World) -> None:
        some = candidates(("a", "b"))
        assert set(some.ensemble_with(["x", "y"], 3, 3, 2)) == {"a", "b", "x"}
        assert set(some.ensemble_with(["x", "y"], 2, 2, 2)) == {"a", "b"}
        with pytest.raises(LedgerError, match="an entry needs 3 bookies, and 2 of 3 are there for some"):
            some.ensemble_with(["x", "y"], 3, 3, 3)

    run(scenario)


def test_each_entry_of_a_striped_ledger_is_checked_and_not_only_the_first() -> None:
    """Entries of four bookies go to two each: two that are away beside one another would have an entry alone."""

    async def scenario(world: World) -> None:
        some = candidates(("a", "b"))
        for _ in range(20):
            try:
                chosen = some.ensemble_with(["x", "y"], 4, 2, 1)
            except LedgerError:
                continue
            here = [name in ("a", "b") for name in chosen]
            assert all(here[at] or here[(at + 1) % 4] for at in range(4))

    run(scenario)
