"""Span: where on disk consecutive entries of a ledger are. Pure."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Span:
    """Entries of one block; all of them, or those that no later block holds again."""

    first_entry_id: int
    count: int
    log_id: int
    offset: int
    size_bytes: int
    """Size of the whole block."""

    @property
    def last_entry_id(self) -> int:
        return self.first_entry_id + self.count - 1

    def entries(self, first_entry_id: int, count: int) -> "Span":
        return replace(self, first_entry_id=first_entry_id, count=count)
