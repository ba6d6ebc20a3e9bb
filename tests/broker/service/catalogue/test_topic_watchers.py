"""A watcher is told each change once, however changes and the first list fall together."""

import asyncio
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from broker.service.catalogue.topic_lists import NAMES_PER_SLICE, compile_pattern, topics_hash
from broker.service.catalogue.topic_watchers import TopicListWatcher, TopicWatchers
from broker.service.topic_name import NamespaceName, TopicName, persistent_topics_path
from metadata.memory import MemoryStore
from metadata.store import Change, Notification
from ports.clock import RealClock
from tests.cost import Counter

NAMES = [f"persistent://public/default/{letter}" for letter in "abcx"]
STEPS = st.lists(st.one_of(st.tuples(st.booleans(), st.sampled_from(NAMES)), st.just("tell")), max_size=30)


@given(st.sets(st.sampled_from(NAMES)), STEPS, st.integers(0, 30), st.integers(0, 30))
def test_the_changes_that_a_watcher_is_told_add_up_to_the_existing_topics(
    first: set[str], steps: list[tuple[bool, str] | str], registered: int, listed: int
) -> None:
    """The watcher is registered before the list is read, and `begin` comes later still; "x" does not match."""
    listed = max(listed, registered)
    there = set(first)
    known: set[str] = set()
    hashes: list[tuple[str, list[str]]] = []

    def tell(new: list[str], deleted: list[str], told_hash: str) -> None:
        assert not set(new) & known
        assert set(deleted) <= known
        known.update(new)
        known.difference_update(deleted)
        hashes.append((told_hash, sorted(known)))

    async def listen(new: list[str], deleted: list[str], told_hash: str) -> Callable[[], None]:
        return lambda: tell(new, deleted, told_hash)

    watcher = TopicListWatcher(re.compile("public/default/[abc]"), listen)
    has_begun = False
    for number, step in enumerate([*steps, *["tell"] * 62]):
        if number == listed:
            known.update(name for name in there if not name.endswith("x"))
            watcher.begin(sorted(known))
            has_begun = True
        if isinstance(step, tuple):
            is_there, name = step
            (there.add if is_there else there.discard)(name)
            if number >= registered:
                change = Change.CREATED if is_there else Change.DELETED
                asyncio.run(watcher.heard({TopicName.parse(name): change}))
        else:
            assert asyncio.run(watcher.tell()) == has_begun
    assert known == {name for name in there if not name.endswith("x")}
    assert all(told_hash == asyncio.run(topics_hash(names)) for told_hash, names in hashes)


COUNT = 8 * NAMES_PER_SLICE


def test_very_many_changes_are_told_in_slices() -> None:
    told = list[list[str]]()

    async def scenario() -> float:
        async def listen(new: list[str], deleted: list[str], told_hash: str) -> Callable[[], None]:
            return lambda: told.append(new)

        watcher = TopicListWatcher(compile_pattern(".*", 50), listen)
        watcher.begin([])
        changes = {TopicName.parse(f"persistent://public/default/{number}"): Change.CREATED for number in range(COUNT)}
        with Counter() as counter:
            await watcher.heard(changes)
            await watcher.tell()
        return counter.longest / counter.steps

    assert asyncio.run(scenario()) < 1 / 8
    assert [len(each) for each in told] == [COUNT]


def test_a_change_costs_the_same_however_many_watch() -> None:
    """They are asked in slices, by the teller of their namespace."""

    async def scenario(watchers: int) -> int:
        store = MemoryStore(RealClock())
        all_of_them = TopicWatchers(store)
        namespace = NamespaceName("public", "default")

        async def listen(new: list[str], deleted: list[str], told_hash: str) -> Callable[[], None]:
            return lambda: None

        for _ in range(watchers):
            all_of_them.add(namespace, TopicListWatcher(compile_pattern(".*", 50), listen))
        with Counter() as counter:
            notification = Notification(Change.CREATED, persistent_topics_path(namespace) + "/t")
            all_of_them._notified(namespace, persistent_topics_path(namespace), notification)
        all_of_them.close()
        return counter.steps

    assert asyncio.run(scenario(1)) == asyncio.run(scenario(8))
