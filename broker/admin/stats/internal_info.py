"""ManagedLedgerInfo as Apache's JSON: the metadata of a topic's ledgers and of its cursors. Loads no topic."""

from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import DecodeError, Message

from metadata.paths import decode_name
from metadata.store import MetadataStore, Stat
from ports.loop.slices import in_slices
from wire.compressed_metadata import uncompressed
from wire.errors import MalformedMetadata
from wire.generated.managed_ledger_pb2 import ManagedCursorInfo, ManagedLedgerInfo

from ...service.errors import TopicNotFound
from ...service.topic_name import TopicName
from ..rest.answers import Refusal


async def info_json(store: MetadataStore, topic: TopicName) -> dict[str, Any]:
    """TopicNotFound; Refusal(500) when it cannot be read. A partition that was never opened has no ledgers."""
    found = await store.get(topic.managed_ledger_path)
    if found is None:
        raise TopicNotFound(str(topic))
    info = ManagedLedgerInfo()
    _parse(info, found.value, topic.managed_ledger_path)
    cursors = {}
    async for name in in_slices(await store.children(topic.managed_ledger_path)):
        cursor = await _cursor(store, f"{topic.managed_ledger_path}/{name}")
        if cursor is not None:
            cursors[decode_name(name)] = cursor
    body = {**_dates(found.stat), "ledgers": [_ledger(each) for each in info.ledger_info], "cursors": cursors}
    if info.HasField("terminated_position"):
        end = info.terminated_position
        body["terminatedPosition"] = {"ledgerId": end.ledger_id, "entryId": end.entry_id}
    if info.properties:
        body["properties"] = {pair.key: pair.value for pair in info.properties}
    return body


async def _cursor(store: MetadataStore, path: str) -> dict[str, Any] | None:
    """None: it was deleted just now."""
    found = await store.get(path)
    if found is None:
        return None
    info = ManagedCursorInfo()
    _parse(info, found.value, path)
    body: dict[str, Any] = {**_dates(found.stat), "cursorsLedgerId": info.cursors_ledger_id}
    if info.HasField("mark_delete_ledger_id"):
        body["markDelete"] = {"ledgerId": info.mark_delete_ledger_id, "entryId": info.mark_delete_entry_id}
    if info.individual_deleted_messages:
        body["individualDeletedMessages"] = [
            {
                "lower": {"ledgerId": each.lower_endpoint.ledger_id, "entryId": each.lower_endpoint.entry_id},
                "upper": {"ledgerId": each.upper_endpoint.ledger_id, "entryId": each.upper_endpoint.entry_id},
            }
            for each in info.individual_deleted_messages
        ]
    return body


def _parse(message: Message, value: bytes, path: str) -> None:
    try:
        message.ParseFromString(uncompressed(value))
    except (DecodeError, MalformedMetadata) as error:
        raise Refusal(500, f"{path} cannot be read: {error}") from error


def _ledger(info: ManagedLedgerInfo.LedgerInfo) -> dict[str, Any]:
    body: dict[str, Any] = {"ledgerId": info.ledger_id}
    if info.HasField("entries"):
        body["entries"] = info.entries
    if info.HasField("size"):
        body["size"] = info.size
    return body | {"timestamp": info.timestamp, "isOffloaded": info.offload_context.complete}


def _dates(stat: Stat) -> dict[str, Any]:
    return {
        "version": stat.version,
        "creationDate": _iso(stat.created_ms),
        "modificationDate": _iso(stat.modified_ms),
    }


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
