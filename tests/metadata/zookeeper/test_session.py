"""The session machine."""

from metadata.sessions import SessionEvent
from metadata.zookeeper.session import (
    Closed,
    Connected,
    Disconnected,
    Expired,
    OpenNext,
    Resume,
    SessionMachine,
    State,
    Tell,
    Ticked,
)


def told(machine: SessionMachine, *events: Connected | Disconnected | Expired | Ticked | Closed) -> list[object]:
    return [effect for event in events for effect in machine.handle(event)]


def test_a_short_cut_is_told_as_lost_connection_and_reconnection() -> None:
    machine = SessionMachine()
    assert told(machine, Connected(), Disconnected(), Ticked(3.2, 4.0), Connected()) == [
        Resume(),
        Tell(SessionEvent.CONNECTION_LOST),
        Resume(),
        Tell(SessionEvent.RECONNECTED),
    ]


def test_silence_counts_as_loss_before_the_server_could_say_so_and_the_expiry_is_not_told_twice() -> None:
    machine = SessionMachine()
    told(machine, Connected())
    assert told(machine, Ticked(3.4, 4.0), Disconnected(), Expired()) == [Tell(SessionEvent.SESSION_LOST), OpenNext()]
    assert not machine.can_send
    assert told(machine, Connected()) == [Resume(), Tell(SessionEvent.SESSION_REESTABLISHED)]


def test_a_session_presumed_lost_that_is_heard_again_is_reestablished() -> None:
    machine = SessionMachine()
    told(machine, Connected(), Ticked(3.4, 4.0))
    assert machine.can_send
    assert told(machine, Ticked(0.1, 4.0)) == [Tell(SessionEvent.SESSION_REESTABLISHED)]
    told(machine, Closed())
    assert told(machine, Disconnected(), Connected(), Expired()) == []
    assert machine.state is State.CLOSED
