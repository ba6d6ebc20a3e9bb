"""Messages that are to be delivered again: after their time, and at once where too many wait."""

from handlers.websocket.machines.redelivery import REFUSED_MAX, Redelivery


def test_the_delay_of_an_entry_counts_from_its_first_refusal() -> None:
    waits = Redelivery(0, 60)
    waits.refused((0, 1, 1), 100.0)
    waits.refused((0, 1, 2), 110.0)
    waits.refused((0, 1, 1), 120.0)
    assert waits.due() == 160.0
    assert waits.refusals_due(159.9) == []
    assert waits.refusals_due(160.0) == [(0, 1, 1)]
    assert waits.due() == 170.0


def test_no_more_than_so_many_refused_entries_wait_and_the_oldest_go_first() -> None:
    waits = Redelivery(0, 1e9)
    for entry_id in range(REFUSED_MAX):
        waits.refused((0, 1, entry_id), 0.0)
    assert waits.refusals_due(1.0) == []
    for entry_id in range(REFUSED_MAX, REFUSED_MAX + 3):
        waits.refused((0, 1, entry_id), 0.0)
    assert waits.due() == 0.0
    assert waits.refusals_due(1.0) == [(0, 1, 0), (0, 1, 1), (0, 1, 2)]
    assert waits.due() == 1e9


def test_a_settled_message_is_not_unanswered() -> None:
    waits = Redelivery(1, 60)
    for text in ("a", "b"):
        waits.delivered(text, 0.0)
    waits.settled("a")
    assert waits.unanswered(0.9) == []
    assert waits.unanswered(1.0) == ["b"]
    assert waits.due() is None
