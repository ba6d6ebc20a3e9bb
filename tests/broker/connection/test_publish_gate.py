"""The gate of a connection: shut as long as anything keeps it shut, and told of once."""

from broker.connection.publish_gate import PublishGate, PublishMemory


def test_a_gate_that_rates_hold_opens_when_the_last_has_let_go_and_nothing_else_keeps_it_shut() -> None:
    changes: list[bool] = []
    gate = PublishGate(PublishMemory(1 << 30), 4, lambda: changes.append(gate.is_shut))
    gate.hold()
    gate.hold()
    gate.resume()
    assert changes == [True]
    gate.began(4, 100)
    gate.resume()
    assert changes == [True]
    gate.ended(4, 100)
    assert (changes, gate.is_shut) == ([True, False], False)
