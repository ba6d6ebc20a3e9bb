"""A watcher is told each change once, however changes and the first list fall together."""

import asyncio
import re

from hypothesis import given
from hypothesis import strategies as st

from broker.service.topic_lists import topics_hash
from broker.service.topic_name import TopicName
from broker.service.topic_watchers import TopicListWatcher
from metadata.store import Change

NAMES = [f"persistent://public/default/{letter}" for letter in "abcx"]
STEPS = st.lists(st.one_of(st.tuples(st.booleans(), st.sampled_from(NAMES)), st.just("tell")), max_size=30)


@given(st.sets(st.sampled_from(NAMES)), STEPS, st.integers(0, 30), st.integers(0, 30))
def test_what_a_watcher_is_told_adds_up_to_what_there_is(
    first: set[str], steps: list[tuple[bool, str] | str], registered: int, listed: int
) -> None:
    """The watcher is registered before the list is read, and `begin` comes later still; "x" does not match."""
    listed = max(listed, registered)
    there = set(first)
    known: set[str] = set()
    hashes: list[tuple[str, list[str]]] = []

    def listen(new: list[str], deleted: list[str], told_hash: str) -> None:
        assert not set(new) & known
        assert set(deleted) <= known
        known.update(new)
        known.difference_update(deleted)
        hashes.append((told_hash, sorted(known)))

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
                watcher.changed(Change.CREATED if is_there else Change.DELETED, TopicName.parse(name))
        else:
            assert asyncio.run(watcher.tell()) == has_begun
    assert known == {name for name in there if not name.endswith("x")}
    assert all(told_hash == asyncio.run(topics_hash(names)) for told_hash, names in hashes)
