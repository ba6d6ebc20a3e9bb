"""Passes over the subscriptions of a topic, in slices: others on the loop have their turn between two slices.

Owns no subscription. The map of subscriptions may change during a pass: those that have left it are passed by, and one that
came meanwhile knows already what the pass tells.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ports.loop.slices import do_in_slices

from .subscription import Subscription


def do_to_each(
    by_name: Mapping[str, Subscription],
    subscriptions: Iterable[Subscription],
    work: Callable[[Subscription], None],
    then: Callable[[], None] = lambda: None,
) -> None:
    """Does the work for these subscriptions, the first slice at once, and calls `then` at the end."""

    def done(subscription: Subscription) -> None:
        if by_name.get(subscription.name) is subscription:
            work(subscription)

    do_in_slices((partial(done, subscription) for subscription in subscriptions), then)


class ReadingOn:
    """Tells subscriptions that there are new entries. At most one pass is under way, and at most one waits, however many
    entries come meanwhile: a subscription that is told reads all that is there."""

    def __init__(self, by_name: Mapping[str, Subscription]) -> None:
        self._by_name = by_name
        self._is_under_way = self._is_wanted = False

    def tell(self, subscriptions: list[Subscription]) -> None:
        """These subscriptions, if no pass is under way; otherwise all, after that pass."""
        if self._is_under_way:
            self._is_wanted = True
            return
        self._is_under_way = True
        do_to_each(self._by_name, subscriptions, _read_on, self._ended)

    def _ended(self) -> None:
        self._is_under_way = False
        if self._is_wanted:
            self._is_wanted = False
            asyncio.get_running_loop().call_soon(self._tell_all)

    def _tell_all(self) -> None:
        self.tell(list(self._by_name.values()))


def _read_on(subscription: Subscription) -> None:
    subscription.entries_available()
