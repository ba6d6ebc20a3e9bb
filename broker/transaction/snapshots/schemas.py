"""The schemas of the topics of snapshots, as Apache 4.0.8 registers them (Schema.AVRO of its classes). Pure data.

An Apache broker reads such a topic with a schema, and is refused where the topic has messages and none.
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from broker.schema.values import SchemaData, SchemaType

_PACKAGE = "org.apache.pulsar.broker.transaction.buffer.metadata"
_PROPERTIES = {"__alwaysAllowNull": "true", "__jsr310ConversionEnabled": "false"}


class Kind(Enum):
    """A topic of each namespace; the value is its name there."""

    SINGLE = "__transaction_buffer_snapshot"
    SEGMENTS = "__transaction_buffer_snapshot_segments"
    INDEXES = "__transaction_buffer_snapshot_indexes"


def _record(name: str, fields: Mapping[str, Any], package: str = "") -> dict[str, Any]:
    """Fields that are no numbers may be null. Without a package it is in that of the record around it."""
    told = []
    for field, kind in fields.items():
        known = {"name": field, "type": kind if kind == "long" else ["null", kind]}
        told.append(known if kind == "long" else known | {"default": None})
    return {"type": "record", "name": name, **({"namespace": package} if package else {}), "fields": told}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "java-class": "java.util.List"}


def _longs(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, "long")


_V2 = f"{_PACKAGE}.v2"
_ID = _record("TxnIDData", _longs("leastSigBits", "mostSigBits"))
_MAX_READ = _longs("maxReadPositionEntryId", "maxReadPositionLedgerId")
_ABORTED = _record("AbortTxnMetadata", _longs("entryId", "ledgerId", "txnIdLeastBits", "txnIdMostBits"))
_INDEX = _record(
    "TransactionBufferSnapshotIndex",
    _longs("abortedMarkEntryID", "abortedMarkLedgerID", "segmentEntryID", "segmentLedgerID", "sequenceID"),
)
_SNAPSHOT = _record("TransactionBufferSnapshotIndexesMetadata", {"aborts": _array(_ID), **_MAX_READ})
_DEFINITIONS = {
    Kind.SINGLE: _record(
        "TransactionBufferSnapshot", {"aborts": _array(_ABORTED), **_MAX_READ, "topicName": "string"}, _PACKAGE
    ),
    Kind.SEGMENTS: _record(
        "TransactionBufferSnapshotSegment",
        {
            "aborts": _array(_ID),
            **_longs("persistentPositionEntryId", "persistentPositionLedgerId", "sequenceId"),
            "topicName": "string",
        },
        _V2,
    ),
    Kind.INDEXES: _record(
        "TransactionBufferSnapshotIndexes",
        {"indexList": _array(_INDEX), "snapshot": _SNAPSHOT, "topicName": "string"},
        _V2,
    ),
}


def schema_of(kind: Kind) -> SchemaData:
    """Returns the schema to register before the first message."""
    definition = json.dumps(_DEFINITIONS[kind], separators=(",", ":")).encode()
    return SchemaData(SchemaType.AVRO, data=definition, properties=_PROPERTIES)
