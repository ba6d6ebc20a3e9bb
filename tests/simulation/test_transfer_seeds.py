"""Seeds of transfers: tokens are moved in transactions while the server dies at any point, and the books balance."""

import functools

import pytest

from broker.transaction.ending_driver import Endings
from broker.transaction.machine import TransactionMachine
from simulation.history import Violation
from simulation.outcome import Outcome
from simulation.transfer_books import Books
from simulation.transfer_scenario import run_transfer_seed

SEEDS = 30
CHUNK = 5
ONE, TWO = (0, 1), (0, 2)


@functools.cache
def outcomes(first: int) -> list[Outcome]:
    return [run_transfer_seed(seed) for seed in range(first, first + CHUNK)]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_books_balance(first: int) -> None:
    found = [f"seed {each.seed}: {each.failure}" for each in outcomes(first) if each.failure is not None]
    assert not found, "bin/simulate --scenario transactions --seeds 1 --from SEED --trace FILE shows one again"


def test_transactions_of_every_end_are_among_them() -> None:
    found = outcomes(0)
    assert all(sum(each.events[name] for each in found) > 5 for name in ("committed", "aborted"))


def books() -> Books:
    found = Books([b"a", b"b"])
    for txn in (ONE, TWO):
        found.opened(txn)
    found.told(ONE, b"a", is_committed=True)
    return found


GOOD = [b"a 0 1", b"b 0 2"]


@pytest.mark.parametrize(
    ("debits", "others", "left"),
    [
        (GOOD, GOOD[:1], []),
        (GOOD[:1], GOOD[:1], []),
        (GOOD, GOOD, [b"b"]),
        ([*GOOD, b"a 0 2"], [*GOOD, b"a 0 2"], []),
        ([b"a 0 2", b"b 0 2"], [b"a 0 2", b"b 0 2"], []),
    ],
)
def test_books_that_do_not_balance_are_told(debits: list[bytes], others: list[bytes], left: list[bytes]) -> None:
    books().check(GOOD, GOOD, [])
    with pytest.raises(Violation):
        books().check(debits, others, left)


def test_what_was_aborted_and_what_was_given_twice_are_told() -> None:
    found = books()
    found.told(TWO, b"b", is_committed=False)
    with pytest.raises(Violation, match="aborted"):
        found.check(GOOD, GOOD, [])
    with pytest.raises(Violation, match="twice"):
        found.opened(ONE)


def test_a_coordinator_that_leaves_somebody_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Endings.end

    async def all_but_one(self, txn_id, action, partitions, subscriptions, mark):  # type: ignore[no-untyped-def]
        await sound(self, txn_id, action, partitions[1:] if txn_id.least % 3 == 1 else partitions, subscriptions, mark)

    monkeypatch.setattr(Endings, "end", all_but_one)
    assert any(run_transfer_seed(seed).failure is not None for seed in range(3))


def test_a_coordinator_that_forgets_its_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionMachine, "replay", lambda self, record, place, last: [])
    assert any(run_transfer_seed(seed).failure is not None for seed in range(6))
