"""NamespaceBundles: the bundles of namespaces in /admin/local-policies (Apache's LocalPolicies), kept current by a watch. Owns
the cache. If no bundles are written there, those of the namespace's policies are, or the default. A namespace keeps them until
one of its bundles is split.
"""

import json
from collections.abc import Callable

from metadata.store import MUST_NOT_EXIST, BadVersion, Change, MetadataError, MetadataStore, Notification

from ..catalogue.namespaces import bundles, policies_path, to_json
from ..topic_name import NamespaceName, TopicName
from .bundles import Bundle, Bundles, parse_bundles

LOCAL_POLICIES = "/admin/local-policies"
_ATTEMPTS_MAX = 3


class CutChanged(MetadataError):
    """Somebody else has cut the namespace otherwise meanwhile."""

    def __init__(self, namespace: NamespaceName) -> None:
        super().__init__(f"the bundles of {namespace} were changed by others: try again")


class NamespaceBundles:
    """Bundles of the namespaces in one metadata store."""

    def __init__(self, store: MetadataStore, default_count: int) -> None:
        self._store, self._default_count = store, default_count
        self._cached: dict[NamespaceName, Bundles] = {}
        self._stale: dict[NamespaceName, None] = {}
        self._listener: Callable[[Bundles], None] | None = None
        self._unwatch = store.watch(LOCAL_POLICIES, self._changed)

    def listen(self, listener: Callable[[Bundles], None]) -> None:
        """Notifies one listener of each cut of a namespace that is another than before."""
        assert self._listener is None, "the owner of the bundles listens, and nobody else"
        self._listener = listener

    def known_of(self, topic: TopicName) -> Bundle | None:
        """Bundle of a topic, as far as it has been read."""
        known = self.known(topic.namespace)
        return None if known is None else known.of(topic)

    def known(self, namespace: NamespaceName) -> Bundles | None:
        """Returns the bundles that `of` has read, as they were then or are now; None before."""
        return self._cached.get(namespace)

    async def of(self, namespace: NamespaceName) -> Bundles:
        """MetadataError."""
        for _ in range(_ATTEMPTS_MAX):
            cached = None if namespace in self._stale else self._cached.get(namespace)
            found = cached or await self._read(namespace)
            if found is not None:
                return found
        raise MetadataError(f"{LOCAL_POLICIES}/{namespace} is being changed by others all the time")

    async def replace(self, cut: Bundles, boundaries: tuple[int, ...]) -> Bundles:
        """Cut the namespace otherwise. CutChanged when `cut` is not how it is cut; MetadataError."""
        namespace = cut.namespace
        path = f"{LOCAL_POLICIES}/{namespace}"
        found = await self._store.get(path)
        if found is None or parse_bundles(namespace, found.value) != cut:
            raise CutChanged(namespace)
        new = Bundles(namespace, boundaries)
        document = json.loads(found.value) | {"bundles": _document(new)}
        try:
            await self._store.put(path, to_json(document), found.stat.version)
        except BadVersion as error:
            raise CutChanged(namespace) from error
        self._keep(new)
        return new

    def close(self) -> None:
        self._unwatch()

    async def _read(self, namespace: NamespaceName) -> Bundles | None:
        path = f"{LOCAL_POLICIES}/{namespace}"
        self._stale.pop(namespace, None)
        found = await self._store.get(path)
        cut = None if found is None else parse_bundles(namespace, found.value)
        if cut is not None:
            self._keep(cut)
            return cut
        policies = await self._store.get(policies_path(namespace))
        cut = None if policies is None else parse_bundles(namespace, policies.value)
        edges = bundles(self._default_count) if cut is None else _document(cut)
        try:
            version = MUST_NOT_EXIST if found is None else found.stat.version
            await self._store.put(path, to_json({"bundles": edges, "migrated": False}), version)
        except BadVersion:
            return None  # another broker was first: read again
        return None

    def _keep(self, cut: Bundles) -> None:
        before = self._cached.get(cut.namespace)
        self._cached[cut.namespace] = cut
        if before is not None and before != cut and self._listener is not None:
            self._listener(cut)

    def _changed(self, notification: Notification) -> None:
        name = notification.path.removeprefix(LOCAL_POLICIES + "/")
        if name.count("/") != 1:
            return
        namespace = NamespaceName(*name.split("/"))
        if notification.change is Change.DELETED:
            self._cached.pop(namespace, None)
            self._stale.pop(namespace, None)
        else:
            self._stale[namespace] = None


def _document(cut: Bundles) -> dict[str, object]:
    return {"boundaries": [f"0x{edge:08x}" for edge in cut.boundaries], "numBundles": len(cut.boundaries) - 1}
