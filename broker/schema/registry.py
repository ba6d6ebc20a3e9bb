"""SchemaRegistry: the broker's access to schemas. Their id is `TENANT/NAMESPACE/TOPIC`; all partitions of a topic have one.

Decides with `compatibility` and keeps with `storage`. Puts of one schema go one after the other, so that a thousand producers
that come at once make one version and no unnamed ledgers; with other brokers the compare-and-set settles it.
Refusals are SchemaRefused.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from metadata.store import BadVersion
from ports.clock import Clock
from ports.loop.slices import aside

from .compatibility import check_compatible, check_readable, is_same_schema
from .definitions import check_definition
from .meters import SchemaMeters
from .storage import SchemaStorage, current
from .values import SchemaData, SchemaRefused, SchemaType, Strategy, VersionedSchema

_ATTEMPTS_MAX = 10
_QUICK_BYTES_MAX = 4096
"""Definitions of so many bytes together are looked at on the loop: some 10 milliseconds at most. One of 1 MB takes seconds."""


class SchemaRegistry:
    """Registry of one broker."""

    def __init__(self, storage: SchemaStorage, clock: Clock) -> None:
        self._storage, self._clock = storage, clock
        self.meters = SchemaMeters()
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    async def versions(self, schema_id: str) -> tuple[VersionedSchema, ...]:
        """Oldest first, since the last deletion. SchemaLost, MetadataError: here and in all others."""
        async with self._measured(schema_id, "get"):
            return current((await self._storage.read(schema_id)).versions)

    async def latest(self, schema_id: str) -> VersionedSchema | None:
        """None when the topic has no schema, or has it no more."""
        versions = await self.versions(schema_id)
        return versions[-1] if versions else None

    async def version(self, schema_id: str, version: int) -> VersionedSchema | None:
        """None when there is no such version, or it was deleted."""
        return next((each for each in await self.versions(schema_id) if each.version == version), None)

    async def places(self, schema_id: str) -> list[tuple[int, int, int]]:
        """Version, ledger and entry of all that is stored, deletions too."""
        locator = (await self._storage.read(schema_id)).locator
        found = [] if locator is None else locator.index
        return [(each.version, each.position.ledgerId, each.position.entryId) for each in found]

    async def ledgers(self, schema_id: str) -> list[tuple[int, int, int]]:
        """Ledger, entries and bytes, of those in which the versions are."""
        found = await self._storage.ledgers(schema_id)
        return [(each.ledger_id, each.last_entry_id + 1, each.length_bytes) for each in found]

    async def find(self, schema_id: str, schema: SchemaData) -> int | None:
        """The version that the definition is."""
        return await _same(await self.versions(schema_id), schema)

    async def put(self, schema_id: str, schema: SchemaData, strategy: Strategy, *, may_update: bool = True) -> int:
        """The version that the definition is, made if it is new and may follow those that are there.

        `may_update` False (isAllowAutoUpdateSchema): only one that is there already.
        """
        async with self._measured(schema_id, "put"):
            return await self._put(schema_id, schema, strategy, may_update)

    async def _put(self, schema_id: str, schema: SchemaData, strategy: Strategy, may_update: bool) -> int:
        await _checked(schema)
        async with self._turn(schema_id):
            for _ in range(_ATTEMPTS_MAX):
                stored = await self._storage.read(schema_id)
                versions = current(stored.versions)
                same = await _same(versions, schema)
                if same is not None:
                    return same
                if not may_update:
                    raise SchemaRefused("Schema not found and schema auto updating is disabled.")
                await self._check(schema_id, versions, schema, strategy)
                try:
                    return await self._storage.append(schema_id, replace(schema, timestamp_ms=self._now_ms()), stored)
                except BadVersion:
                    continue  # another broker was first: on top of that, then
        raise SchemaRefused(f"The schema of {schema_id} is being changed by others all the time")

    async def check_compatible(self, schema_id: str, schema: SchemaData, strategy: Strategy) -> None:
        """Whether `put` would take it. SchemaRefused."""
        await _checked(schema)
        await self._check(schema_id, await self.versions(schema_id), schema, strategy)

    async def _check(self, schema_id: str, before: Sequence[VersionedSchema], schema: SchemaData, strategy: Strategy) -> None:
        is_compatible = False
        try:
            existing = [each.schema for each in before]
            await aside(partial(check_compatible, existing, schema, strategy), is_long=_is_long(schema, *existing))
            is_compatible = True
        finally:
            self.meters.judged(schema_id, is_compatible=is_compatible)

    async def check_readable(self, schema_id: str, schema: SchemaData, strategy: Strategy) -> None:
        """Whether a consumer with this schema can read the topic, which has one. SchemaRefused."""
        await _checked(schema)
        existing = [each.schema for each in await self.versions(schema_id)]
        await aside(partial(check_readable, existing, schema, strategy), is_long=_is_long(schema, *existing))

    async def delete(self, schema_id: str, user: str, *, force: bool = False) -> int | None:
        """The version that says so (`force`: the last that was there, and nothing is left then); None when there was none."""
        async with self._measured(schema_id, "del"):
            return await self._delete(schema_id, user, force=force)

    async def _delete(self, schema_id: str, user: str, *, force: bool) -> int | None:
        async with self._turn(schema_id):
            if force:
                return await self._storage.delete(schema_id)
            for _ in range(_ATTEMPTS_MAX):
                stored = await self._storage.read(schema_id)
                if not current(stored.versions):
                    return None
                deletion = SchemaData(SchemaType.NONE, user=user, timestamp_ms=self._now_ms(), is_deleted=True)
                try:
                    return await self._storage.append(schema_id, deletion, stored)
                except BadVersion:
                    continue  # as in `put`
        raise SchemaRefused(f"The schema of {schema_id} is being changed by others all the time")

    @asynccontextmanager
    async def _measured(self, schema_id: str, kind: str) -> AsyncIterator[None]:
        loop, has_failed = asyncio.get_running_loop(), True
        began = loop.time()
        try:
            yield
            has_failed = False
        finally:
            self.meters.ended(schema_id, kind, loop.time() - began, has_failed=has_failed)

    @asynccontextmanager
    async def _turn(self, schema_id: str) -> AsyncIterator[None]:
        lock, waiting = self._turns.get(schema_id, (asyncio.Lock(), 0))
        self._turns[schema_id] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._turns.pop(schema_id)
            if waiting > 1:
                self._turns[schema_id] = lock, waiting - 1

    def _now_ms(self) -> int:
        return self._clock.now_ms()


def _is_long(*schemas: SchemaData) -> bool:
    return sum(len(each.data) for each in schemas) > _QUICK_BYTES_MAX


async def _checked(schema: SchemaData) -> None:
    """SchemaRefused."""
    await aside(partial(check_definition, schema), is_long=_is_long(schema))


async def _same(versions: Sequence[VersionedSchema], schema: SchemaData) -> int | None:
    """The first version that the definition is."""

    def found() -> int | None:
        return next((each.version for each in versions if is_same_schema(each.schema, schema)), None)

    return await aside(found, is_long=_is_long(schema, *(each.schema for each in versions)))
