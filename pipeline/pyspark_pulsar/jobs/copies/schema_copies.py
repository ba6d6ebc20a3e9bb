"""Schemas of messages for the producers of their copies: the same definition, registered under a version of its own."""

import functools
from typing import Any

from wire.generated.pulsar_api_pb2 import KeyValue
from wire.generated.pulsar_api_pb2 import Schema as RegistrySchema

from ...client.registry import schema_version
from ...decode.values.typed import Schema
from ...options import Access

_NO_VERSION = -1


class SchemaCopies:
    """Schemas of one topic. A version never changes, so each is asked for once."""

    def __init__(self, topic: str, access: Access) -> None:
        self._of_version = functools.cache(functools.partial(_asked, topic, access))

    def of_version(self, version: int) -> RegistrySchema | None:
        """None for -1, and for a version that is not there any more: then the copies are bytes. Refused, Unreachable."""
        return None if version == _NO_VERSION else self._of_version(version)


def _asked(topic: str, access: Access, version: int) -> RegistrySchema | None:
    found = schema_version(topic, access, version)
    return None if found is None else registered(found)


def registered(found: Schema) -> RegistrySchema:
    """Schema in the form in which a producer registers it."""
    kinds: dict[str, Any] = {name.upper().replace("_", ""): number for name, number in RegistrySchema.Type.items()}
    kinds |= {"BOOLEAN": RegistrySchema.Bool}
    properties = [KeyValue(key=key, value=value) for key, value in found.properties]
    kind = kinds[found.kind.replace("_", "")]
    return RegistrySchema(name="copy", schema_data=found.data, type=kind, properties=properties)
