"""The claim machine."""

from metadata.claim import (
    ClaimMachine,
    DeleteOurs,
    Failed,
    Given,
    Hold,
    Made,
    Make,
    MakeLater,
    NodeGone,
    SessionChanged,
    Taken,
    TellHold,
    Wanted,
)
from metadata.sessions import SessionEvent


def test_a_claim_that_found_a_node_which_went_meanwhile_asks_again() -> None:
    """The answer that another client has the node and the news that it went may arrive in either order."""
    machine = ClaimMachine(b"me")
    assert machine.handle(Wanted()) == [TellHold(Hold.TAKING), Make(1)]
    assert machine.handle(NodeGone()) == []
    assert machine.handle(Taken(1, b"other")) == [Make(2)]
    assert machine.handle(Taken(2, b"other")) == [TellHold(Hold.BUSY, b"other")]
    assert machine.handle(NodeGone()) == [TellHold(Hold.TAKING), Make(3)]
    assert machine.handle(Made(3)) == [TellHold(Hold.HELD, b"me")]


def test_a_node_that_was_made_after_the_claim_was_given_up_is_taken_away() -> None:
    machine = ClaimMachine(b"me")
    machine.check_invariants()
    machine.handle(Wanted())
    machine.handle(Given())
    assert machine.handle(Made(1)) == [DeleteOurs()]


def test_a_late_answer_takes_away_no_node_of_a_claim_that_is_wanted_again() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    machine.handle(Given())
    assert machine.handle(Wanted()) == [TellHold(Hold.TAKING), Make(3)]
    assert machine.handle(Made(1)) == []


def test_a_claim_takes_away_what_its_earlier_session_left_and_keeps_what_it_just_made() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    assert machine.handle(Taken(1, b"me")) == [Make(2, after_delete=True)]
    assert machine.handle(Made(2)) == [TellHold(Hold.HELD, b"me")]
    assert machine.handle(NodeGone()) == [Make(3)]  # old news, perhaps
    assert machine.handle(Taken(3, b"me", is_ours=True)) == []
    assert machine.handle(NodeGone()) == [Make(4)]
    assert machine.handle(Taken(4, b"other")) == [TellHold(Hold.BUSY, b"other")]


def test_a_claim_is_not_held_from_the_loss_of_the_session_until_it_is_made_again() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    machine.handle(Made(1))
    assert machine.handle(SessionChanged(SessionEvent.CONNECTION_LOST)) == []
    assert machine.handle(SessionChanged(SessionEvent.SESSION_LOST)) == [TellHold(Hold.TAKING)]
    (make,) = machine.handle(SessionChanged(SessionEvent.SESSION_REESTABLISHED))
    assert isinstance(make, Make)
    assert machine.handle(Failed(make.attempt)) == [MakeLater(make.attempt + 1)]
    assert machine.handle(Given())[0] == TellHold(Hold.FREE)
    machine.check_invariants()
