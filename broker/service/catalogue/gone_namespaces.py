"""GoneNamespaces: listeners with state of a namespace are notified of its deletion, here or by another broker. Owns the
listeners. Each listener drops its own state; otherwise a broker would keep state of every deleted namespace.
"""

from collections.abc import Callable, Iterable

from ..topic_name import NamespaceName

Listener = Callable[[NamespaceName], None]


class GoneNamespaces:
    """Notifier of deleted namespaces on one broker. `topics` names those that are loaded, or are being loaded or closed."""

    def __init__(self, topics: Callable[[], Iterable[str]]) -> None:
        self.listeners: list[Listener] = []
        self._topics = topics

    def gone(self, namespace: NamespaceName) -> None:
        """Does nothing if the namespace exists again, with topics: these rely on the state."""
        start = f"persistent://{namespace}/"
        if any(name.removeprefix("non-").startswith(start) for name in self._topics()):
            return
        for each in self.listeners:
            each(namespace)
