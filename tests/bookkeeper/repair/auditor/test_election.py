"""Election of the auditor: the vote that wins."""

from bookkeeper.repair.auditor.election import winning_vote


def test_the_lowest_number_is_the_auditor_whatever_the_order_of_the_names() -> None:
    assert winning_vote(["V_0000000010", "V_0000000009", "V_0000000011"]) == "V_0000000009"
    assert winning_vote(["V_10000000000", "V_9999999999"]) == "V_9999999999"
    assert winning_vote(["nonsense"]) is None
