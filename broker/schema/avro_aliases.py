"""Effect of a reader's aliases on a writer's schema: Java's Schema.applyAliases, by which Apache's brokers and clients go.
Pure.

A type of the writer's gets the name for which the reader says that one as an alias. Then a field of a record gets the name for
which the reader's record of that name says it as an alias: in a record that is called otherwise, aliases of fields count for
nothing, and where they count, they go before a field that has that name itself. Knows nothing of which schema reads which.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .values import SchemaRefused


@dataclass(frozen=True, slots=True)
class Aliases:
    """Aliases of one reader. All names of types are full ones."""

    types: dict[str, str] = field(default_factory=dict)
    fields: dict[str, dict[str, str]] = field(default_factory=dict)
    """Names of fields by record, then by alias."""

    def name_of(self, written: Any) -> str:
        """Returns the reader's name for a type of the writer."""
        name: str = written.fullname
        return self.types.get(name, name)

    def fields_of(self, written: Any) -> Mapping[str, Any]:
        """Fields of a record of the writer, by the reader's names. SchemaRefused when two fields get one name."""
        renamed = self.fields.get(self.name_of(written), {})
        found: dict[str, Any] = {}
        for each in written.fields:
            name = renamed.get(each.name, each.name)
            if name in found:
                raise SchemaRefused(f"by the aliases of the reader's schema, {written.fullname} has two fields {name}")
            found[name] = each
        return found


def aliases_of(reader: Any) -> Aliases:
    """Aliases of the whole schema."""
    found = Aliases()
    _gather(reader, found, {})
    return found


def _gather(schema: Any, found: Aliases, seen: dict[int, None]) -> None:
    if id(schema) in seen:
        return
    seen[id(schema)] = None
    match schema.type:
        case "record":
            _gather_fields(schema, found, seen)
        case "array":
            _gather(schema.items, found, seen)
        case "map":
            _gather(schema.values, found, seen)
        case "union":
            for branch in schema.schemas:
                _gather(branch, found, seen)
    if schema.type in ("record", "enum", "fixed"):
        found.types.update(dict.fromkeys(_aliases_of_type(schema), schema.fullname))


def _gather_fields(record: Any, found: Aliases, seen: dict[int, None]) -> None:
    for each in record.fields:
        for alias in each.get_prop("aliases") or ():
            found.fields.setdefault(record.fullname, {})[alias] = each.name
        _gather(each.type, found, seen)


def _aliases_of_type(schema: Any) -> list[str]:
    """Returns the aliases of a type, in its namespace where they do not name another."""
    scope = schema.fullname.rpartition(".")[0]
    return [alias if "." in alias or not scope else f"{scope}.{alias}" for alias in schema.get_prop("aliases") or ()]
