"""Whether a schema may follow those that are there: Apache's SchemaCompatibilityChecks and their use by
SchemaRegistryServiceImpl. Pure; refusals are SchemaRefused, with Apache's words where tools show them.
"""

import json
from collections.abc import Sequence

from . import avro_rules, protobuf_rules
from .definitions import is_json_schema
from .key_value import split_key_value
from .values import AVRO_TYPES, SchemaData, SchemaRefused, SchemaType, Strategy


def is_same_schema(one: SchemaData, other: SchemaData) -> bool:
    """They are one version."""
    if one.type != other.type:
        return False
    return avro_rules.is_same(one.data, other.data) if one.type in AVRO_TYPES else one.data == other.data


def check_compatible(existing: Sequence[SchemaData], new: SchemaData, strategy: Strategy) -> None:
    """`existing`: the versions since the last deletion, oldest first. Only transitive strategies check more than the newest."""
    if strategy == Strategy.ALWAYS_COMPATIBLE or not existing:
        return
    for old in existing if strategy.is_transitive else existing[-1:]:
        if old.type != new.type:
            raise SchemaRefused(f"Incompatible schema: exists schema type {old.type.name}, new schema type {new.type.name}")
        if old.data != new.data or strategy.is_transitive:
            _check_pair(old, new, strategy)


def check_readable(existing: Sequence[SchemaData], wanted: SchemaData, strategy: Strategy) -> None:
    """Checks that a consumer can read written data. Never checks the readers of data that it would write."""
    if strategy in (Strategy.BACKWARD, Strategy.FORWARD, Strategy.FORWARD_TRANSITIVE, Strategy.FULL):
        check_compatible(existing, wanted, Strategy.BACKWARD)
    elif strategy != Strategy.ALWAYS_COMPATIBLE:
        for old in existing:
            check_compatible([old], wanted, strategy)


def _check_pair(old: SchemaData, new: SchemaData, strategy: Strategy) -> None:
    if new.type in (SchemaType.AVRO, SchemaType.JSON):
        _check_structured(old, new, strategy)
    elif new.type == SchemaType.PROTOBUF_NATIVE:
        _check_both_ways(old, new, strategy, protobuf_rules.can_read)
    elif new.type == SchemaType.KEY_VALUE:
        for was, becomes in zip(split_key_value(old), split_key_value(new), strict=True):
            if was.type != becomes.type:
                raise SchemaRefused(
                    f"Incompatible schema: exists schema type {was.type.name}, new schema type {becomes.type.name}"
                )
            _check_pair(was, becomes, strategy)
    elif strategy == Strategy.ALWAYS_INCOMPATIBLE:
        raise SchemaRefused("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")


def _check_structured(old: SchemaData, new: SchemaData, strategy: Strategy) -> None:
    if new.type == SchemaType.JSON and not _is_avro(old.data):
        if is_json_schema(new.data) and not _is_avro(new.data) and _json_id(old.data) != _json_id(new.data):
            raise SchemaRefused(f"Incompatible Schema from {_json_id(old.data)} + to {_json_id(new.data)}")
        return
    _check_both_ways(old, new, strategy, avro_rules.can_read)


def _check_both_ways(old: SchemaData, new: SchemaData, strategy: Strategy, can_read: "avro_rules.CanRead") -> None:
    if strategy in (Strategy.ALWAYS_INCOMPATIBLE, Strategy.UNDEFINED):
        raise SchemaRefused("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")
    reasons = (
        can_read(new.data, old.data) if strategy.reads_old else None,
        can_read(old.data, new.data) if strategy.is_read_by_old else None,
    )
    for reason in reasons:
        if reason is not None:
            raise SchemaRefused(f"Error during schema compatibility check with strategy {strategy}: {reason}")


def _is_avro(data: bytes) -> bool:
    try:
        avro_rules.check_avro(data)
    except SchemaRefused:
        return False
    return True


def _json_id(data: bytes) -> object:
    return json.loads(data).get("id")
