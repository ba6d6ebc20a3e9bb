"""Mirror: the paths that watchers have been told of, so that what was missed while disconnected is told afterwards. Pure.

ZooKeeper sends changes to those who are connected; a watch that is set again tells nothing of the time between. So after
each connection the watched trees are walked (`listed` for each answer, in the order of the answers and events), and what
differs is told: a path unknown is CREATED, a known one that is not there DELETED, one whose zxid is newer than what was seen
before MODIFIED. Told at least once: what was made or written just around the loss of the connection may be told twice.
"""

from metadata.paths import is_at_or_below, join_path, split_path
from metadata.store import Change, Notification
from metadata.zookeeper.requests import Listed

NOTHING_IS_NEWS = 1 << 64
"""A zxid beyond every other: for the first walk, before which nobody was told of anything."""


class Walk:
    """One walk over the tree at `root`: which paths wait to be listed, and since which zxid changes are news.

    `was_known`: an earlier walk came to its end, so that a path that is not known was not there.
    """

    def __init__(self, root: str, seen_zxid: int, was_known: bool) -> None:
        self.root, self.seen_zxid, self.was_known = root, seen_zxid, was_known
        self.to_list: list[str] = [root]
        self.in_flight = 0
        self.touched: set[str] = set()
        """Paths of which an event came during the walk: their news are told already."""

    @property
    def is_over(self) -> bool:
        return not self.to_list and not self.in_flight


class Mirror:
    """What is known below the roots that are watched: for each path the names of its children."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._walks: dict[str, Walk] = {}
        self._known: dict[str, None] = {}
        """Roots that were walked to the end once."""

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, path: str) -> bool:
        return path in self._names

    def begin_walk(self, root: str, seen_zxid: int) -> Walk:
        """In place of one over the same root that has not ended."""
        walk = self._walks[root] = Walk(root, seen_zxid, root in self._known)
        return walk

    def is_current(self, walk: Walk) -> bool:
        return self._walks.get(walk.root) is walk

    def end_walk(self, walk: Walk) -> None:
        if self.is_current(walk):
            del self._walks[walk.root]
            self._known[walk.root] = None

    def break_off(self, walk: Walk) -> None:
        if self.is_current(walk):
            del self._walks[walk.root]

    def forget(self, root: str, kept: list[str]) -> None:
        """Nobody watches `root` any more; paths below the roots in `kept` stay."""
        self._walks.pop(root, None)
        self._known.pop(root, None)
        for path in [path for path in self._names if is_at_or_below(path, root)]:
            if not any(is_at_or_below(path, other) for other in kept):
                del self._names[path]

    def changed(self, change: Change, path: str) -> list[Notification]:
        """An event from the server: told as it is."""
        for walk in self._walks.values():
            if is_at_or_below(path, walk.root):
                walk.touched.add(path)
        if change is Change.DELETED:
            gone = [each for each in self._remove(path) if each.path != path]
            return [*gone, Notification(change, path)]
        self._add(path)
        return [Notification(change, path)]

    def listed(self, walk: Walk, path: str, answer: Listed | None) -> list[Notification]:
        """The answer to a listing of the walk; its children are to be listed next."""
        if answer is None:
            return self._remove(path)
        news = self._news_of(walk, path, answer)
        self._add(path)
        present = set(answer.names)
        for name in sorted(self._names[path].keys() - present):
            news += self._remove(join_path(path, name))
        walk.to_list += [join_path(path, name) for name in sorted(present)]
        return news

    def _news_of(self, walk: Walk, path: str, answer: Listed) -> list[Notification]:
        if path in walk.touched:
            return []
        created, modified = (zxid > walk.seen_zxid for zxid in (answer.stat.created_zxid, answer.stat.modified_zxid))
        if path not in self._names:
            return [Notification(Change.CREATED, path)] if created or walk.was_known else []
        if created:
            return [*self._remove(path), Notification(Change.CREATED, path)]
        return [Notification(Change.MODIFIED, path)] if modified else []

    def _add(self, path: str) -> None:
        self._names.setdefault(path, {})
        parent, name = split_path(path)
        if parent in self._names and path != parent:
            self._names[parent][name] = None

    def _remove(self, path: str) -> list[Notification]:
        """Forget a path and all below it: the deepest are told first."""
        if path not in self._names:
            return []
        news = [each for name in sorted(self._names[path]) for each in self._remove(join_path(path, name))]
        self._names.pop(path, None)
        parent, name = split_path(path)
        if parent in self._names:
            self._names[parent].pop(name, None)
        return [*news, Notification(Change.DELETED, path)]
