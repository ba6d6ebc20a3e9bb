"""Transaction ids, and the ways in which a transaction ends."""

from wire.generated import pulsar_api_pb2 as api
from wire.transactions import TxnAction, TxnId


def test_the_text_of_a_transaction_id_is_apaches() -> None:
    assert str(TxnId(1, 42)) == "(1,42)"


def test_ids_are_ordered_by_coordinator_and_then_by_sequence() -> None:
    assert sorted([TxnId(1, 0), TxnId(0, 9), TxnId(0, 10)]) == [TxnId(0, 9), TxnId(0, 10), TxnId(1, 0)]
    assert len({TxnId(0, 9), TxnId(0, 9)}) == 1


def test_actions_have_the_numbers_of_the_protocol() -> None:
    assert {each.name: each.value for each in TxnAction} == dict(api.TxnAction.items())
