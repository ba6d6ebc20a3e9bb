"""SchemaMeters: numbers and times of reads, writes and deletions of schemas (Apache: SchemaRegistryStats). Pure."""

from dataclasses import dataclass, field

KINDS = ("get", "put", "del")
NAMESPACES_MAX = 10_000
"""Namespaces that are counted. One more displaces the one used the longest ago: clients may ask for schemas of any name."""


@dataclass(slots=True)
class OperationCounts:
    """Counts of one kind of operation. `seconds` of those that succeeded, which are `count`."""

    count: int = 0
    seconds: float = 0.0
    failed: int = 0


@dataclass(slots=True)
class NamespaceCounts:
    """Since the broker began."""

    operations: dict[str, OperationCounts] = field(default_factory=lambda: {kind: OperationCounts() for kind in KINDS})
    compatible: int = 0
    incompatible: int = 0


class SchemaMeters:
    """Meters of one registry, by namespaces whose schemas were requested."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, NamespaceCounts] = {}

    def of(self, schema_id: str) -> NamespaceCounts:
        namespace = schema_id.rpartition("/")[0]
        found = self.by_namespace.pop(namespace, None) or NamespaceCounts()
        self.by_namespace[namespace] = found
        if len(self.by_namespace) > NAMESPACES_MAX:
            del self.by_namespace[next(iter(self.by_namespace))]
        return found

    def forget(self, namespace: str) -> None:
        """Forgets a deleted namespace."""
        self.by_namespace.pop(namespace, None)

    def ended(self, schema_id: str, kind: str, seconds: float, *, has_failed: bool) -> None:
        counts = self.of(schema_id).operations[kind]
        if has_failed:
            counts.failed += 1
        else:
            counts.count += 1
            counts.seconds += seconds

    def judged(self, schema_id: str, *, is_compatible: bool) -> None:
        """A schema that is new to its topic."""
        counts = self.of(schema_id)
        counts.compatible += is_compatible
        counts.incompatible += not is_compatible
