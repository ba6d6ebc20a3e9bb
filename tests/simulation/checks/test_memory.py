"""Pure machines of storage that a simulated server holds at its end are checked, wherever they are held."""

import pytest

from managed_ledger.cache.places import ReadingPlaces
from managed_ledger.cache.reads_in_flight import ReadsInFlight
from simulation.checks.memory import check_storage
from wire.position import Position


def test_a_machine_whose_invariant_is_broken_is_found_in_what_a_server_holds() -> None:
    places = ReadingPlaces()
    server = {"topics": [{"places": places, "gate": ReadsInFlight(10, 3)}]}
    assert check_storage([server]) == 2
    places._order.append(Position(1, 1))
    with pytest.raises(AssertionError):
        check_storage([server])
