"""ReplicaRead: one read of one entry at several replicas, one after the other or, when one is slow, side by side. Pure.

The first sound answer counts. The next replica is asked when one has failed, and also when an answer is late (a speculative
read, as BookKeeper's); no replica is asked twice, so that a read ends.
"""

from collections.abc import Sequence


def read_sequence(write_set: Sequence[int], start: int | None, doubtful: Sequence[int] = ()) -> Sequence[int]:
    """The order in which replicas are asked: from index `start` on where all have everything (sticky reads), doubtful ones
    last."""
    order = list(write_set)
    if start is not None and start in order:
        at = order.index(start)
        order = order[at:] + order[:at]
    return [index for index in order if index not in doubtful] + [index for index in order if index in doubtful]


class ReplicaRead:
    """Order in which replicas are asked. Each method gives the indexes to be asked now: none or one."""

    def __init__(self, sequence: Sequence[int]) -> None:
        self._left = list(sequence)
        self._asked: dict[int, None] = {}
        self.reasons: list[str] = []
        self.is_lost = True
        """Each replica that failed has lost the entry."""

    @property
    def is_over(self) -> bool:
        """All replicas have failed."""
        return not self._left and not self._asked

    def start(self) -> Sequence[int]:
        return self._ask()

    def on_late(self) -> Sequence[int]:
        """No replica has answered for a while."""
        return self._ask()

    def on_failed(self, index: int, reason: str, *, is_lost: bool) -> Sequence[int]:
        """A replica failed. No other is asked while an answer is awaited: that one was asked because of this one's delay."""
        del self._asked[index]
        self.reasons.append(reason)
        self.is_lost = self.is_lost and is_lost
        return () if self._asked else self._ask()

    def _ask(self) -> Sequence[int]:
        if not self._left:
            return ()
        index = self._left.pop(0)
        self._asked[index] = None
        return (index,)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        waited_for = [*self._asked, *self._left]
        assert len(set(waited_for)) == len(waited_for), "a replica is asked once"
