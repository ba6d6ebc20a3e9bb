"""BrokerUnacked: limit of unacknowledged messages on all topics of a broker together. Pure. The limit covers subscriptions that
serve several consumers at once (Shared, Key_Shared); those of one active consumer have no such count. Each subscription with
more than its share is held to it at the limit until the sum is below half of the limit; one that grows beyond its share
meanwhile is held, too. (Apache: BrokerService.addUnAckedMessages, checkUnAckMessageDispatching, which looks every 30 s; here it
is known with every delivery.)
"""

from typing import Protocol


class Sharer(Protocol):
    """A subscription."""

    def hold_to(self, messages_max: int) -> None:
        """No more than so many unacknowledged messages; 0: no more than its policies say."""


class BrokerUnacked:
    """`limit` messages, at least 1; `share` of it, more than 0, for each subscription while it is reached."""

    def __init__(self, limit: int, share: float) -> None:
        self.limit = limit
        self.share_messages = max(1, int(limit * share))
        self.total = 0
        self.is_reached = False
        self._counts: dict[Sharer, int] = {}
        """Sharers with unacknowledged messages."""
        self._held: dict[Sharer, None] = {}
        """Only while it is reached; about as many at most as there are shares in the limit."""

    def count(self, sharer: Sharer, messages: int) -> None:
        """Sets the sharer's number of unacknowledged messages."""
        before = self._counts.get(sharer, 0)
        if messages == before:
            return
        self.total += messages - before
        if messages:
            self._counts[sharer] = messages
        else:
            del self._counts[sharer]
        if self.is_reached and self.total < self.limit / 2:
            self._release()
        elif self.is_reached:
            self._hold_if_large(sharer, messages)
        elif self.total >= self.limit:
            self._reach()

    def forget(self, sharer: Sharer) -> None:
        """Removes a sharer that dispatches no more; nothing is called for it."""
        self._held.pop(sharer, None)
        self.count(sharer, 0)

    def _reach(self) -> None:
        self.is_reached = True
        for sharer, messages in list(self._counts.items()):
            self._hold_if_large(sharer, messages)

    def _hold_if_large(self, sharer: Sharer, messages: int) -> None:
        if messages > self.share_messages and sharer not in self._held:
            self._held[sharer] = None
            sharer.hold_to(self.share_messages)

    def _release(self) -> None:
        self.is_reached = False
        held, self._held = self._held, {}
        for sharer in held:
            sharer.hold_to(0)

    def check_invariants(self) -> None:
        assert self.total == sum(self._counts.values())
        assert self.is_reached or (self.total < self.limit and not self._held)
        assert all(count > 0 for count in self._counts.values())
