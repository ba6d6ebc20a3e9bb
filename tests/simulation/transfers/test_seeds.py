"""Seeds of transfers: tokens are moved in transactions while the server dies at any point, and the books balance."""

import functools

import pytest

from simulation.checks.history import Violation
from simulation.planted import PLANTED
from simulation.transfers.books import Books
from simulation.transfers.plants import TRANSFER_PLANTS
from simulation.transfers.scenario import run_transfer_seed
from simulation.world.outcome import Outcome

SEEDS = 30
CHUNK = 5
ONE, TWO = (0, 1), (0, 2)
SEEDS_MAX = 300
FOUND_FROM = {
    "marker-before-the-log": 20,
    "coordinator-forgets": 26,
    "low-water-mark-too-high": 12,
    "pending-ack-not-awaited": 70,
    "snapshot-ahead": 65,
}
"""First seed tried for each bug: before it no crash comes at the right moment."""


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


def test_aborted_messages_that_are_read_and_ids_given_twice_are_violations() -> None:
    found = books()
    found.told(TWO, b"b", is_committed=False)
    with pytest.raises(Violation, match="aborted"):
        found.check(GOOD, GOOD, [])
    with pytest.raises(Violation, match="twice"):
        found.opened(ONE)


def test_one_that_was_ended_in_two_ways_is_told() -> None:
    found = books()
    found.contradicted(ONE, "it was ended otherwise")
    with pytest.raises(Violation, match="two ways"):
        found.check(GOOD, GOOD, [])


def test_a_message_read_before_its_client_asked_for_the_commit_is_a_violation() -> None:
    found = books()
    found.committing(ONE)
    found.seen(GOOD[0])
    found.check(GOOD, GOOD, [])
    found.seen(GOOD[1])
    with pytest.raises(Violation, match="before anybody committed"):
        found.check(GOOD, GOOD, [])


@pytest.mark.parametrize("name", sorted(TRANSFER_PLANTS))
def test_a_planted_bug_is_found(name: str) -> None:
    plant, first = PLANTED[name], FOUND_FROM.get(name, 0)
    seeds = [*range(first, SEEDS_MAX), *range(first)]
    with plant.planted():
        failure = next(filter(None, (plant.run(seed, None).failure for seed in seeds)), None)
    assert failure is not None, plant.what
    assert failure.startswith("Violation: "), "found by what it breaks, not because it does not fit any more"
