"""SchemaMeters: how often schemas were read, written and deleted, and for how long (Apache: SchemaRegistryStats). Pure."""

from dataclasses import dataclass, field

KINDS = ("get", "put", "del")


@dataclass(slots=True)
class OperationCounts:
    """Of one kind. `seconds` of those that succeeded, which are `count`."""

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
    """Of one registry. There are as many namespaces as there are with schemas that somebody used."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, NamespaceCounts] = {}

    def of(self, schema_id: str) -> NamespaceCounts:
        namespace = schema_id.rpartition("/")[0]
        found = self.by_namespace.get(namespace)
        return self.by_namespace.setdefault(namespace, NamespaceCounts()) if found is None else found

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
