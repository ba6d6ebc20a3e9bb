"""JSON documents in metadata: read, made, changed by compare-and-set, deleted. Knows nothing of their content."""

import json
from collections.abc import Callable
from typing import Any

from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, NoNode

from ...service.catalogue.namespaces import to_json
from .answers import Refusal

_ATTEMPTS_MAX = 5


class Documents:
    """JSON documents in one store. MetadataError for unreadable documents."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def get(self, path: str) -> Any:
        """None where there is none."""
        return (await self._read(path))[0]

    async def create(self, path: str, document: Any) -> bool:
        """False when there is one."""
        try:
            await self._store.put(path, to_json(document), MUST_NOT_EXIST)
        except BadVersion:
            return False
        return True

    async def change(self, path: str, edit: Callable[[Any], Any]) -> None:
        """Puts the result of `edit`, which gets None where there is no document, and may refuse. Refusal(409) at the bound."""
        for _ in range(_ATTEMPTS_MAX):
            before, version = await self._read(path)
            after = edit(before)
            try:
                await self._store.put(path, to_json(after), version)
            except BadVersion:
                continue  # another writer was first: apply the edit to its version
            return
        raise Refusal(409, f"{path} is changed by others all the time: try again")

    async def delete(self, path: str) -> bool:
        """False when there is none."""
        try:
            await self._store.delete(path)
        except NoNode:
            return False
        return True

    async def delete_tree(self, path: str) -> None:
        """Everything below it, and itself."""
        for name in await self._store.children(path):
            await self.delete_tree(f"{path}/{name}")
        await self.delete(path)

    async def _read(self, path: str) -> tuple[Any, int]:
        found = await self._store.get(path)
        if found is None:
            return None, MUST_NOT_EXIST
        if not found.value:
            return None, found.stat.version
        try:
            return json.loads(found.value), found.stat.version
        except ValueError as error:
            raise MetadataError(f"unreadable value at {path}: {error}") from error
