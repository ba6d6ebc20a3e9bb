"""GoneNamespaces: whoever knows something of a namespace is told when it was deleted, here or by another broker.

Owns who is told. What is forgotten is each listener's; without this a broker would know for ever of all that there were.
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
        """Nothing happens when it is there again, with topics: these rely on what is known."""
        start = f"persistent://{namespace}/"
        if any(name.removeprefix("non-").startswith(start) for name in self._topics()):
            return
        for each in self.listeners:
            each(namespace)
