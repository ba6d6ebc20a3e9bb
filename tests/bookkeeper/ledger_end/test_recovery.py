"""Recovery reads when, and only when, no writer can get an ack quorum any more: against a twin that tries every ack quorum."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.ledger_end.recovery import Fenced, FenceFailed, GiveUp, Read, Recovery
from bookkeeper.write.quorum_tracker import Quorum
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode

checked_machines = checked_after_each_step(Recovery)

QUORUMS = st.sampled_from(
    [
        Quorum(*sizes)
        for sizes in ((1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 2, 1), (3, 2, 2), (4, 3, 2), (5, 2, 2), (5, 3, 3))
    ]
)


def can_still_write(quorum: Quorum, fenced: set[int]) -> bool:
    """Whether some entry can have an ack quorum of bookies of which none is fenced."""
    return any(
        not fenced & set(ack_set)
        for entry_id in range(quorum.ensemble_size)
        for ack_set in combinations(quorum.write_set(entry_id), quorum.ack_quorum)
    )


@settings(max_examples=500, deadline=None)
@given(QUORUMS, st.data())
def test_recovery_reads_as_soon_as_nobody_can_write_and_not_before(quorum: Quorum, data: st.DataObject) -> None:
    recovery = Recovery(quorum, 0)
    recovery.start()
    fenced: set[int] = set()
    for bookie in data.draw(st.permutations(range(quorum.ensemble_size))):
        if data.draw(st.booleans()):
            fenced.add(bookie)
            effects = recovery.handle(Fenced(bookie, -1))
        else:
            effects = recovery.handle(FenceFailed(bookie, BookieCode.EIO))
        reads = bool(effects) and isinstance(effects[0], Read)
        assert reads is not can_still_write(quorum, fenced)
        if reads:
            return
    assert isinstance(effects[0], GiveUp)


@pytest.mark.parametrize("fenced", [[0], [1], [2]])
def test_one_fenced_bookie_of_a_striped_ledger_covers_some_write_sets_and_is_not_enough(fenced: list[int]) -> None:
    recovery = Recovery(Quorum(3, 2, 2), 0)
    recovery.start()
    assert [recovery.handle(Fenced(bookie, -1)) for bookie in fenced] == [()]
