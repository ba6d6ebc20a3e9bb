"""Types of a topic's columns, as its schema in the registry says them."""

from collections.abc import Sequence
from typing import Any

import pyarrow

from ..client.brokers import topics_of
from ..client.registry import latest_schemas, schema_version
from ..decode.arrow_columns import SCHEMA
from ..decode.values.avro_schema import UnusableSchema
from ..decode.values.typed import Schema, types_of
from ..errors import NoSuchTopic, WrongOption
from ..names import partitioned_name
from ..options import SourceOptions


def registry_schema(options: SourceOptions) -> Schema | None:
    """Schema with the types of key and value; None where they are bytes. WrongOption where topics have different ones."""
    if not options.is_typed:
        return None
    topics = list(dict.fromkeys(partitioned_name(each) for each in _topics(options)))
    of_topics: dict[Schema | None, str] = {}
    for topic, schema in zip(topics, _schemas_of(topics, options), strict=True):
        of_topics.setdefault(schema, topic)
    for schema, topic in of_topics.items():
        _check_usable(topic, schema)
    if len(of_topics) > 1:
        one, other = list(of_topics.values())[:2]
        raise WrongOption(f"{one} and {other} have different schemas: read each by itself, or their bytes with values=raw")
    return next(iter(of_topics), None)


def _topics(options: SourceOptions) -> list[str]:
    try:
        return list(options.topics) or topics_of(options)
    except NoSuchTopic:
        return []  # topics of a stream may come later; for a batch the plan raises the error


def _schemas_of(topics: list[str], options: SourceOptions) -> list[Schema | None]:
    """None where values are bytes."""
    if options.schema_version is None:
        found = latest_schemas(topics, options.access)
    else:
        found = [_version_of(topic, options.schema_version, options) for topic in topics]
    return [None if each is None or each.kind in ("NONE", "BYTES") else each for each in found]


def _version_of(topic: str, version: int, options: SourceOptions) -> Schema:
    found = schema_version(topic, options.access, version)
    if found is None:
        raise WrongOption(f"option schemaVersion={version}: {topic} has no such version of its schema")
    return found


def _check_usable(topic: str, schema: Schema | None) -> None:
    try:
        if schema is not None:
            types_of(schema)
    except UnusableSchema as error:
        raise WrongOption(f"{topic}: its schema cannot become columns: {error}. To read its bytes: values=raw") from None


def arrow_schema(schema: Schema | None) -> Any:
    """All columns, key and value with the types of the topic's schema."""
    typed = {} if schema is None else types_of(schema)
    return pyarrow.schema([each.with_type(typed.get(each.name, each.type)) for each in SCHEMA])


def chosen_columns(options: SourceOptions) -> list[str]:
    """The names of those that are made, in their order. WrongOption.

    `error` is a column where records that cannot be decoded are rows: mode=PERMISSIVE.
    """
    unknown = [name for name in options.columns if name not in SCHEMA.names]
    if unknown:
        raise WrongOption(f"option columns: {', '.join(unknown)}: not there; there are {', '.join(SCHEMA.names)}")
    check_once("option columns", options.columns)
    return list(options.columns) or [name for name in SCHEMA.names if name != "error" or options.mode == "PERMISSIVE"]


def check_once(what: str, names: Sequence[str]) -> None:
    """WrongOption: Spark would take the batches of such columns for damaged."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WrongOption(f"{what}: {', '.join(twice)}: there twice; name a column once, select it as often as you like")
