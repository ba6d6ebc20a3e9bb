"""Mirror: the paths that watchers have been told of, so that changes missed while disconnected are told afterwards. Pure.

ZooKeeper sends changes to connected clients; a watch that is set again tells nothing of the time between. So after
each connection the watched trees are walked (`listed` for each answer, in the order of the answers and events), and each
difference is told: a path unknown is CREATED, a known one that is not there DELETED, one whose zxid is newer than the one seen
before MODIFIED. Told at least once: a change just around the loss of the connection may be told twice.

Nodes found by a read count too (`seen`): a reader that keeps one is notified when it changes or goes, also if the connection
was lost before the first walk had come that far.
"""

from collections.abc import Sequence

from metadata.paths import ROOT, is_at_or_below, join_path, split_path
from metadata.store import Change, Notification
from metadata.zookeeper.requests import Listed

NOTHING_IS_NEWS = 1 << 64
"""A zxid beyond every other: for the first walk, before which no watcher was told of anything."""


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
    """Known paths below the watched roots: for each path the names of its children."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._walks: dict[str, Walk] = {}
        self._roots: dict[str, bool] = {}
        """Watched roots; True for those that were walked to the end once."""
        self._loose: dict[str, None] = {}
        """Paths that a read or an event showed before any walk came to them; a walk that ends without has missed them."""

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, path: str) -> bool:
        return path in self._names

    def begin_walk(self, root: str, seen_zxid: int) -> Walk:
        """Begin a walk, in place of an unfinished one over the same root."""
        walk = self._walks[root] = Walk(root, seen_zxid, self._roots.setdefault(root, False))
        return walk

    def is_current(self, walk: Walk) -> bool:
        return self._walks.get(walk.root) is walk

    def end_walk(self, walk: Walk) -> list[Notification]:
        """End a walk: paths shown before that it did not find are gone."""
        if not self.is_current(walk):
            return []
        del self._walks[walk.root]
        self._roots[walk.root] = True
        gone = sorted((path for path in self._loose if is_at_or_below(path, walk.root)), reverse=True)
        for path in gone:
            del self._loose[path]
        return [Notification(Change.DELETED, path) for path in gone]

    def break_off(self, walk: Walk) -> None:
        if self.is_current(walk):
            del self._walks[walk.root]

    def forget(self, root: str, kept: list[str]) -> None:
        """Forget `root`, which has no watcher any more; paths below the roots in `kept` stay."""
        self._walks.pop(root, None)
        self._roots.pop(root, None)
        for path in [path for path in (*self._names, *self._loose) if is_at_or_below(path, root)]:
            if not any(is_at_or_below(path, other) for other in kept):
                self._names.pop(path, None)
                self._loose.pop(path, None)

    def seen(self, path: str, names: Sequence[str] = ()) -> None:
        """A read found a node, and these children of it. No watcher was told of them by that."""
        if self._is_watched(path):
            shown = (path, *(join_path(path, name) for name in names))
            self._loose |= dict.fromkeys(each for each in shown if each not in self._names)

    def changed(self, change: Change, path: str) -> list[Notification]:
        """An event from the server: told as it is."""
        for walk in self._walks.values():
            if is_at_or_below(path, walk.root):
                walk.touched.add(path)
        if change is Change.DELETED:
            self._loose.pop(path, None)
            gone = [each for each in self._remove(path) if each.path != path]
            return [*gone, Notification(change, path)]
        if path in self._roots or path in self._names or split_path(path)[0] in self._names:
            self._add(path)
        else:
            self._loose[path] = None
        return [Notification(change, path)]

    def listed(self, walk: Walk, path: str, answer: Listed | None) -> list[Notification]:
        """The answer to a listing of the walk; its children are to be listed next."""
        if answer is None:
            return self._remove(path)
        news = self._news_of(walk, path, answer)
        self._add(path)
        self._loose.pop(path, None)
        present = set(answer.names)
        for name in sorted(self._names[path].keys() - present):
            news += self._remove(join_path(path, name))
        walk.to_list += [join_path(path, name) for name in sorted(present)]
        return news

    def _news_of(self, walk: Walk, path: str, answer: Listed) -> list[Notification]:
        if path in walk.touched:
            return []
        created, modified = (zxid > walk.seen_zxid for zxid in (answer.stat.created_zxid, answer.stat.modified_zxid))
        if path not in self._names and (created or walk.was_known):
            return [Notification(Change.CREATED, path)]
        if path not in self._names and path not in self._loose:
            return []
        if created:
            gone = self._remove(path)
            for each in self._walks.values():  # what was told of them is no longer the last word
                each.touched -= {news.path for news in gone}
            return [*gone, Notification(Change.CREATED, path)]
        return [Notification(Change.MODIFIED, path)] if modified else []

    def _is_watched(self, path: str) -> bool:
        while path not in self._roots and path != ROOT:
            path, _ = split_path(path)
        return path in self._roots

    def _add(self, path: str) -> None:
        parent, name = split_path(path)
        if parent in self._names and path != parent:
            self._names[parent][name] = None
        self._names.setdefault(path, {})

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
