"""Deletes namespaces: their topics wherever they are served, then their metadata (Apache: internalDeleteNamespace).

While it is being deleted a namespace is marked (`deleted` in its policies), as there. Owns nothing.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from metadata.paths import encode_name
from metadata.store import MetadataStore
from ports.loop.slices import in_slices

from ....service.addresses import Answer
from ....service.catalogue.catalogue import Catalogue
from ....service.catalogue.namespaces import policies_path
from ....service.catalogue.topic_lists import NAMES_PER_SLICE
from ....service.errors import BundleNotFound, TopicElsewhere, TopicNotFound
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.lookup import Lookup
from ....service.topic_name import NamespaceName, TopicName
from ....service.topic_schemas import TopicSchemas
from ...rest.answers import Refusal
from ...rest.documents import Documents
from ...rest.elsewhere import ask
from .bundles import bundles_of
from .unloading import unload_namespace

_LEFT_BEHIND = (
    "/admin/local-policies",
    "/admin/partitioned-topics",
    "/managed-ledgers",
    "/schemas",
    "/loadbalance/bundle-data",
    "/loadbalance/resource-quota",
)
_DOMAINS = ("persistent", "non-persistent")


class NamespaceDeletion:
    """Deletion of the namespaces of one cluster."""

    def __init__(
        self, catalogue: Catalogue, lookup: Lookup, lifecycle: TopicLifecycle, schemas: TopicSchemas, store: MetadataStore
    ) -> None:
        self._catalogue, self._lookup, self._lifecycle = catalogue, lookup, lifecycle
        self._schemas, self._store, self._documents = schemas, store, Documents(store)

    async def delete(self, namespace: NamespaceName, *, is_forced: bool) -> None:
        """Refusal: 404, or 409 when there are topics in it and it is not forced."""
        path = policies_path(namespace)
        if not await self._store.exists(path):
            raise Refusal(404, f"Namespace {namespace} does not exist.")
        await self._mark(path, is_deleted=True)
        topics = await self._catalogue.list_topics(namespace, system_topics=True)
        partitioned = [each for domain in _DOMAINS for each in await self._partitioned(namespace, domain)]
        of_system = [topic async for topic in in_slices(topics, NAMES_PER_SLICE) if topic.is_system]
        if not is_forced and (partitioned or len(of_system) < len(topics)):
            await self._mark(path, is_deleted=False)
            raise Refusal(409, "Cannot delete non empty namespace")
        known = set(of_system)
        async for topic in in_slices(chain((topic for topic in topics if topic not in known), of_system)):
            await self._delete_topic(topic)  # the system's last: they say how the others are to be treated
        await unload_namespace(self._lookup, namespace)
        await self._delete_schemas(namespace)
        for root in _LEFT_BEHIND:
            await self._documents.delete_tree(f"{root}/{namespace}")
        await self._documents.delete(path)

    async def delete_bundle(self, namespace: NamespaceName, text: str, *, is_forced: bool) -> Answer | None:
        """Deletes the topics of the bundle, and has its owner release it; the range stays. Returns the other broker that owns
        it. As `delete`.
        """
        bundle = (await bundles_of(self._lookup, namespace)).named(text)
        if bundle is None:
            raise BundleNotFound(str(namespace), text)
        listed = in_slices(await self._catalogue.list_topics(namespace), NAMES_PER_SLICE)
        topics = [topic async for topic in listed if bundle.covers(topic)]
        if topics and not is_forced:
            raise Refusal(409, "Cannot delete non empty bundle")
        async for topic in in_slices(topics):
            await self._delete_topic(topic)
        return await self._lookup.owners.unload(namespace, text)

    async def _delete_schemas(self, namespace: NamespaceName) -> None:
        """Deletes the schemas of system topics and of topics that never were, with their ledgers, which no other list has."""
        async for name in in_slices(await self._store.children(f"/schemas/{namespace}")):
            await self._schemas.delete(TopicName.of_metadata("persistent", namespace, name), "", force=True)

    async def _partitioned(self, namespace: NamespaceName, domain: str) -> list[TopicName]:
        return await self._catalogue.partitioned_topics.list_in(namespace, domain)

    async def _delete_topic(self, topic: TopicName) -> None:
        try:
            await self._lifecycle.delete_topic(topic, force=True)
        except TopicNotFound:
            return  # another writer was first
        except TopicElsewhere:
            found = await self._lookup.find(topic)
            path = f"/admin/v2/persistent/{topic.namespace}/{encode_name(topic.local_name)}?force=true&authoritative=true"
            await ask(self._lookup.neighbours, found.address, "DELETE", path)

    async def _mark(self, path: str, *, is_deleted: bool) -> None:
        def edit(document: Mapping[str, Any] | None) -> Any:
            if document is None:
                raise Refusal(404, "Namespace does not exist")
            return {**document, "deleted": is_deleted}

        await self._documents.change(path, edit)
