"""Schemas as values: SchemaData, its types and versions, the strategies of compatibility. Pure data.

Names are Apache's (SchemaType, SchemaCompatibilityStrategy). The numbers of types are those of the client protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

VERSION_BYTES = 8
EMPTY_VERSION = b""
"""Version for a producer on a topic without a schema, and for one without a schema."""


class SchemaType(IntEnum):
    """Type of a definition. NONE is called BYTES too by Apache."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21
    EXTERNAL = 22

    @property
    def is_primitive(self) -> bool:
        """Whether the definition is empty: both ends know how such a value is written."""
        return self not in _DEFINED


_DEFINED = frozenset(
    {
        SchemaType.JSON,
        SchemaType.PROTOBUF,
        SchemaType.AVRO,
        SchemaType.KEY_VALUE,
        SchemaType.PROTOBUF_NATIVE,
        SchemaType.AUTO_CONSUME,
        SchemaType.EXTERNAL,
    }
)
AVRO_TYPES = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})
"""Types whose definition is an Avro schema."""


class Strategy(StrEnum):
    """SchemaCompatibilityStrategy: the required readers of old and new data. BACKWARD: the new schema reads data of the old
    ones.
    """

    UNDEFINED = "UNDEFINED"
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether the strategy compares with all versions, not with the newest alone."""
        return self.name.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """The new schema must read data of the old one."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """The old schema must read data of the new one."""
        return self.name.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class SchemaData:
    """A definition, its author and its time (milliseconds since the epoch)."""

    type: SchemaType
    data: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    timestamp_ms: int = 0
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class VersionedSchema:
    """One of the versions of a topic's schema, which count from 0 and never come again."""

    version: int
    schema: SchemaData


class SchemaRefused(Exception):
    """The definition is invalid, or incompatible with the existing ones. Clients get IncompatibleSchema."""


def version_bytes(version: int) -> bytes:
    """LongSchemaVersion: eight bytes, big-endian."""
    return version.to_bytes(VERSION_BYTES, "big", signed=True)


def version_of(raw: bytes) -> int:
    """Returns the version in 8 bytes, or in the 64 that clients before 2.4 send. SchemaRefused for fewer."""
    if len(raw) < VERSION_BYTES:
        raise SchemaRefused(
            "Empty schema version" if not raw else f"A schema version has {VERSION_BYTES} bytes, not {len(raw)}"
        )
    return int.from_bytes(raw[:VERSION_BYTES], "big", signed=True)
