"""ReplicaRead: the order in which replicas are asked for one entry."""

from bookkeeper.read.replica_read import ReplicaRead, read_sequence


def test_replicas_are_asked_from_the_sticky_one_on_and_doubtful_ones_last() -> None:
    assert read_sequence((0, 1, 2), None) == [0, 1, 2]
    assert read_sequence((0, 1, 2), 1) == [1, 2, 0]
    assert read_sequence((0, 1, 2), 5) == [0, 1, 2]
    assert read_sequence((0, 1, 2), 1, doubtful=(1,)) == [2, 0, 1]


def test_the_next_replica_is_asked_after_a_failure() -> None:
    read = ReplicaRead((2, 0))
    assert read.start() == (2,)
    assert read.on_failed(2, "no entry", is_lost=True) == (0,)
    assert not read.is_over
    assert read.on_failed(0, "no entry", is_lost=True) == ()
    assert (read.is_over, read.is_lost, read.reasons) == (True, True, ["no entry", "no entry"])


def test_a_failure_beside_an_awaited_answer_asks_no_other_replica() -> None:
    read = ReplicaRead((0, 1, 2))
    read.start()
    assert read.on_late() == (1,)
    assert read.on_failed(0, "slow", is_lost=False) == ()
    assert read.on_failed(1, "gone", is_lost=True) == (2,)
    read.check_invariants()


def test_an_entry_is_lost_only_if_every_replica_says_so() -> None:
    read = ReplicaRead((0, 1))
    read.start()
    read.on_failed(0, "time-out", is_lost=False)
    read.on_failed(1, "no entry", is_lost=True)
    assert read.is_over
    assert not read.is_lost


def test_a_late_answer_of_the_last_replica_asks_nobody() -> None:
    read = ReplicaRead((0,))
    read.start()
    assert read.on_late() == ()
    assert not read.is_over
