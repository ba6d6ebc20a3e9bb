"""A record batch of a frame as outgoing rows, and the frame's columns checked before. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ..decode.octets import Words
from .errors import WrongFrame
from .messages import Keys, OutgoingRows, encoded_properties, wire_keys
from .values.value_column import ValueEncoder

BROKERS_OWN = {"message_id", "index", "publish_time", "producer", "sequence_id", "schema_version", "error"}
"""Columns of a frame that was read: brokers and producers set them anew, so they are left out."""
_TAKEN = "key, value, properties, event_time and topic"
_US_PER_MS = 1000


def check_columns(names: Sequence[str], topic: str, has_typed_keys: bool = False) -> None:
    """WrongFrame for what cannot be written, before anything is."""
    if has_typed_keys and "key" not in names:
        raise WrongFrame("option keySchema, and no column key")
    for name in names:
        if name not in {"key", "value", "properties", "event_time", "topic"} | BROKERS_OWN:
            raise WrongFrame(
                f"column {name}: there is no place for it; a message has {_TAKEN}. Put it into the value: struct({name}, ...)"
            )
    if "value" not in names:
        raise WrongFrame(f"no column value; a message has {_TAKEN}")
    if not topic and "topic" not in names:
        raise WrongFrame("no option topic, and no column topic: it is not said where the rows are to go")


def outgoing(batch: Any, values: ValueEncoder, sequence_ids: Words) -> OutgoingRows:
    """Outgoing rows of a batch, which has as many rows as there are sequence ids. WrongFrame names the column."""
    names = batch.schema.names
    keys, payloads = values.pairs(batch) if values.key is not None else _keys_and_values(batch, values)
    return OutgoingRows(
        values=payloads,
        keys=keys,
        properties=_properties(batch) if "properties" in names else None,
        event_times=_event_times(batch) if "event_time" in names else None,
        sequence_ids=sequence_ids,
    )


def _keys_and_values(batch: Any, values: ValueEncoder) -> tuple[Keys | None, Any]:
    has_keys = "key" in batch.schema.names and batch.column("key").null_count < len(batch)
    return wire_keys(text_or_bytes(batch, "key")) if has_keys else None, values.encoded(batch.column("value"))


def topics_in(batch: Any) -> Any:
    """The column topic. WrongFrame when a row has none."""
    topics = batch.column("topic")
    if topics.null_count:
        raise WrongFrame("column topic: null in a row, and there is no option topic")
    return topics


def text_or_bytes(batch: Any, name: str) -> Any:
    """The column. WrongFrame when it is neither."""
    column = batch.column(name)
    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_binary(column.type)):
        raise WrongFrame(f"column {name} is {column.type}: expected string or binary; cast it, or say what it is: keySchema")
    return column


def _properties(batch: Any) -> Any:
    column = batch.column("properties")
    kind = column.type
    is_texts = pyarrow.types.is_map(kind) and pyarrow.types.is_string(kind.key_type) and pyarrow.types.is_string(kind.item_type)
    if not is_texts:
        raise WrongFrame(f"column properties is {kind}: expected map<string,string>")
    if column.null_count:  # the offsets of a null row may span what nobody is to see
        column = pyarrow.compute.fill_null(column, pyarrow.scalar([], kind))
    return encoded_properties(column)


def _event_times(batch: Any) -> Words:
    column = batch.column("event_time")
    if not pyarrow.types.is_timestamp(column.type):
        raise WrongFrame(f"column event_time is {column.type}: expected timestamp")
    microseconds = column.cast(pyarrow.timestamp("us", tz=column.type.tz)).cast(pyarrow.int64())
    found = numpy.asarray(pyarrow.compute.fill_null(microseconds, 0)).astype(numpy.int64) // _US_PER_MS
    if bool((found < 0).any()):
        raise WrongFrame("column event_time: a time before 1970, which Pulsar's messages cannot have")
    return found.view(numpy.uint64)
