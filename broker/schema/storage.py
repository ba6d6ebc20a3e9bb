"""SchemaStorage: the versions of a topic's schema in metadata and ledgers, as Apache's BookkeeperSchemaStorage has them.

A version is one entry of a ledger of its own; the locator of the topic, `/schemas/TENANT/NAMESPACE/TOPIC`, names all versions
and changes by compare-and-set. Read versions stay in memory until the locator changes (SCHEMAS_KEPT topics). The ledger is
closed before the locator names it: every version in a locator can be read.
"""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerStore
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataStore, NoNode, StoreUnavailable, Versioned
from ports.logs import line
from wire.generated import schema_storage_pb2 as format_
from wire.run import batch_of

from .values import SchemaData, SchemaType, VersionedSchema

log = logging.getLogger(__name__)

SCHEMAS_KEPT = 1000
_NOWHERE = format_.PositionInfo(ledgerId=-1, entryId=-1)
_READ_BYTES_MAX = 8 << 20


class SchemaLost(Exception):
    """A version cannot be read. The text names the version, its place, and the remedy."""


@dataclass(frozen=True, slots=True)
class Stored:
    """All versions, oldest first, deletions too; and the version of the node that names them."""

    versions: tuple[VersionedSchema, ...] = ()
    node_version: int = MUST_NOT_EXIST
    locator: format_.SchemaLocator | None = None


class SchemaStorage:
    """Storage of one broker's schemas."""

    def __init__(self, store: MetadataStore, ledgers: LedgerStore) -> None:
        self._store, self._ledgers = store, ledgers
        self._kept: OrderedDict[str, tuple[Versioned, Stored]] = OrderedDict()

    async def read(self, schema_id: str) -> Stored:
        """Nothing for a topic that never had one. SchemaLost, MetadataError."""
        found = await self._store.get(_path(schema_id))
        if found is None:
            self._kept.pop(schema_id, None)
            return Stored()
        kept = self._kept.get(schema_id)
        if kept is None or kept[0] != found:
            known = {} if kept is None else {each.version: each for each in kept[1].versions}
            kept = found, await self._read_versions(schema_id, found, known)
        self._kept[schema_id] = kept
        self._kept.move_to_end(schema_id)
        if len(self._kept) > SCHEMAS_KEPT:
            self._kept.popitem(last=False)
        return kept[1]

    async def ledgers(self, schema_id: str) -> list[LedgerReader]:
        """Closed ledgers that hold the versions, without those that cannot be opened."""
        found = await self.read(schema_id)
        index = [] if found.locator is None else found.locator.index
        opened = []
        for ledger_id in dict.fromkeys(each.position.ledgerId for each in index):
            try:
                opened.append(await self._ledgers.open(ledger_id))
            except LedgerError as error:
                log.warning(line("a ledger of a schema cannot be opened", schema=schema_id, ledger=ledger_id, reason=error))
        return opened

    async def append(self, schema_id: str, schema: SchemaData, after: Stored) -> int:
        """The next version, after those that were read. BadVersion when others came in between; LedgerError."""
        index = [] if after.locator is None else list(after.locator.index)
        version = index[-1].version + 1 if index else 0
        hash_ = b"" if schema.is_deleted else hashlib.sha256(schema.data).digest()
        before = index or [format_.IndexEntry(version=0, position=_NOWHERE, hash=hash_)]
        entry = format_.SchemaEntry(schema_data=_encode(schema_id, schema), index=before)
        position = await self._write(schema_id, entry.SerializeToString())
        info = format_.IndexEntry(version=version, position=position, hash=hash_)
        locator = format_.SchemaLocator(info=info, index=[*index, info])
        try:
            await self._store.put(_path(schema_id), locator.SerializeToString(), after.node_version)
        except (BadVersion, StoreUnavailable):  # nothing was written; of any other failure that is not known
            await self._forget_ledger(schema_id, position.ledgerId)
            raise
        return version

    async def delete(self, schema_id: str) -> int | None:
        """Locator and ledgers, for good. The newest version; None when there was none."""
        found = await self._store.get(_path(schema_id))
        if found is None:
            return None
        locator = format_.SchemaLocator.FromString(found.value)
        try:
            await self._store.delete(_path(schema_id), found.stat.version)
        except NoNode:
            return None
        self._kept.pop(schema_id, None)
        for each in locator.index:
            await self._forget_ledger(schema_id, each.position.ledgerId)
        return locator.info.version

    async def _read_versions(self, schema_id: str, found: Versioned, known: dict[int, VersionedSchema]) -> Stored:
        try:
            locator = format_.SchemaLocator.FromString(found.value)
        except DecodeError as error:
            raise SchemaLost(f"{_path(schema_id)} is no schema locator: {error}. Delete the schema with force") from error
        versions = [known.get(each.version) or await self._read_version(schema_id, each) for each in locator.index]
        return Stored(tuple(versions), found.stat.version, locator)

    async def _read_version(self, schema_id: str, at: format_.IndexEntry) -> VersionedSchema:
        place = f"version {at.version} of the schema of {schema_id}, entry {at.position.ledgerId}:{at.position.entryId}"
        try:
            reader = await self._ledgers.open(at.position.ledgerId)
            run = await reader.read(at.position.entryId, 1, _READ_BYTES_MAX)
            entry = format_.SchemaEntry.FromString(bytes(run.payload(at.position.entryId)))
            return VersionedSchema(at.version, _decode(entry.schema_data))
        except (LedgerError, DecodeError) as error:
            raise SchemaLost(
                f"{place}, cannot be read: {error}. If it is gone for good, delete the schema with force"
            ) from error

    async def _write(self, schema_id: str, payload: bytes) -> format_.PositionInfo:
        custom = {"application": b"pulsar", "component": b"schema", "pulsar/schemaId": schema_id.encode()}
        writer = await self._ledgers.create(custom)
        try:
            await writer.append(batch_of((payload,)))
            await writer.close()
        except LedgerError:
            await self._forget_ledger(schema_id, writer.ledger_id)
            raise
        return format_.PositionInfo(ledgerId=writer.ledger_id, entryId=0)

    async def _forget_ledger(self, schema_id: str, ledger_id: int) -> None:
        try:
            await self._ledgers.delete(ledger_id)
        except LedgerError as error:
            log.warning(line("a ledger of a schema was not deleted", schema=schema_id, ledger=ledger_id, reason=error))


def _path(schema_id: str) -> str:
    return f"/schemas/{schema_id}"


def _encode(schema_id: str, schema: SchemaData) -> bytes:
    pairs = [format_.SchemaInfo.KeyValuePair(key=key, value=value) for key, value in schema.properties.items()]
    info = format_.SchemaInfo(
        schema_id=schema_id,
        user=schema.user,
        type=_stored_type(schema.type),
        schema=schema.data,
        timestamp=schema.timestamp_ms,
        deleted=schema.is_deleted,
        props=pairs,
    )
    return info.SerializeToString()


def _stored_type(kind: SchemaType) -> str:
    """One more than that of the protocol; except for AUTO_CONSUME, which is never stored, so that EXTERNAL has its number."""
    return format_.SchemaInfo.SchemaType.Name(kind if kind == SchemaType.EXTERNAL else kind + 1)


def _type(stored: int) -> SchemaType:
    return SchemaType.EXTERNAL if stored == format_.SchemaInfo.EXTERNAL else SchemaType(stored - 1)


def _decode(data: bytes) -> SchemaData:
    info = format_.SchemaInfo.FromString(data)
    properties = {pair.key: pair.value for pair in info.props}
    return SchemaData(_type(info.type), info.schema, properties, info.user, info.timestamp, info.deleted)


def current(versions: Sequence[VersionedSchema]) -> tuple[VersionedSchema, ...]:
    """Versions after the last deletion."""
    deleted = [place for place, each in enumerate(versions) if each.schema.is_deleted]
    return tuple(versions[deleted[-1] + 1 :]) if deleted else tuple(versions)
