"""FollowedTrees: keeps watches set at the server and walks the watched trees; tells watchers of changes.

Owns which trees are followed and for how many watchers. Bound: WALK_MAX listings on their way.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from metadata.store import Change, Notification
from metadata.zookeeper.requests import (
    AddWatch,
    Answer,
    Children,
    ConnectionLost,
    Found,
    Get,
    Listed,
    RemoveWatch,
    Request,
)
from metadata.zookeeper.session_driver import SessionDriver
from metadata.zookeeper.watch_mirror import NOTHING_IS_NEWS, Mirror, Walk
from ports.logs import line

_log = logging.getLogger(__name__)

WALK_MAX = 100


class FollowedTrees:
    """All watched trees."""

    def __init__(self, sessions: SessionDriver, tell: Callable[[Sequence[Notification]], None]) -> None:
        self._sessions, self._tell = sessions, tell
        self._mirror = Mirror()
        self._watchers: dict[str, int] = {}
        self._since: dict[str, int] = {}
        """Up to which zxid each root has been told of, as far as the connections before this one went."""
        self._is_set: dict[str, None] = {}
        """Roots whose watch the server has confirmed on this connection."""

    def follow(self, root: str) -> None:
        self._watchers[root] = self._watchers.get(root, 0) + 1
        if self._watchers[root] == 1:
            self._since[root] = self._sessions.last_zxid or NOTHING_IS_NEWS
            if self._sessions.is_connected:
                self._begin(root, NOTHING_IS_NEWS)

    def unfollow(self, root: str) -> None:
        self._watchers[root] -= 1
        if not self._watchers[root]:
            del self._watchers[root], self._since[root]
            self._is_set.pop(root, None)
            self._mirror.forget(root, list(self._watchers))
            self._sessions.send(RemoveWatch(root), _ignore)

    def set_again(self, seen_zxid: int) -> None:
        """After a connection: the server has forgotten the watches."""
        confirmed, self._is_set = self._is_set, {}
        for root in self._watchers:
            if root in confirmed:
                self._since[root] = seen_zxid
            self._begin(root, self._since[root])

    def changed(self, change: Change, path: str) -> None:
        self._tell(self._mirror.changed(change, path))

    def answered(self, request: Request, answer: Answer | Exception) -> None:
        """A request was answered; called before its caller learns it, so that the results of reads are known from here on."""
        match request, answer:
            case Get(), Found():
                self._mirror.seen(request.path)
            case Children(), Listed():
                self._mirror.seen(request.path, answer.names)

    def _begin(self, root: str, seen_zxid: int) -> None:
        self._sessions.send(AddWatch(root), partial(self._answered, root))
        self._go_on(self._mirror.begin_walk(root, seen_zxid))

    def _go_on(self, walk: Walk) -> None:
        while walk.to_list and walk.in_flight < WALK_MAX:
            path = walk.to_list.pop()
            walk.in_flight += 1
            self._sessions.send(Children(path), partial(self._listed, walk, path))
        if walk.is_over:
            self._tell(self._mirror.end_walk(walk))

    def _listed(self, walk: Walk, path: str, answer: Answer | Exception) -> None:
        walk.in_flight -= 1
        if not self._mirror.is_current(walk):
            return
        if isinstance(answer, ConnectionLost):
            self._mirror.break_off(walk)  # the next connection begins another
            return
        if isinstance(answer, Exception):
            _log.warning(
                line("a watched node cannot be listed: changes below it that were missed stay so", path=path, reason=answer)
            )
        else:
            self._tell(self._mirror.listed(walk, path, answer if isinstance(answer, Listed) else None))
        self._go_on(walk)

    def _answered(self, root: str, answer: Answer | Exception) -> None:
        if answer is None and root in self._watchers:
            self._is_set[root] = None
        elif isinstance(answer, Exception) and not isinstance(answer, ConnectionLost):
            _log.error(line("ZooKeeper refused a watch: 3.6 or later is needed", path=root, reason=answer))


def _ignore(_answer: Answer | Exception) -> None:
    """Ignore events of a watch that has ended."""
