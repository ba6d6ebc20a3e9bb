"""Aborted transactions that are forgotten with their ledgers."""

from hypothesis import given
from hypothesis import strategies as st

from broker.topic.transactions.aborted import AbortedTransactions
from wire.position import Position
from wire.transactions import TxnId

IDS = st.builds(TxnId, st.integers(0, 2), st.integers(0, 6))


@given(st.lists(st.tuples(st.integers(0, 3), IDS, st.integers(0, 2)), max_size=60))
def test_only_aborted_transactions_of_earlier_ledgers_are_forgotten(steps: list[tuple[int, TxnId, int]]) -> None:
    aborted, twin, ledger = AbortedTransactions(), dict[TxnId, int](), 0
    for forget, txn_id, forward in steps:
        ledger += forward
        aborted.add(txn_id, Position(ledger, 0))
        twin.setdefault(txn_id, ledger)
        if forget == 1:
            aborted.seal(3)
        if forget == 0:
            aborted.forget_before(ledger)
            twin = {known: where for known, where in twin.items() if where >= ledger or known in aborted}
        aborted.check_invariants()
        assert len(aborted) == len(twin)
        assert all(known in aborted for known in twin)
