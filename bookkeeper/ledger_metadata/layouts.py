"""Ledger layouts: paths of a ledger's node under Apache's four ledger managers, and the layout of a cluster. Pure.

/ledgers/LAYOUT names the manager's factory: two lines, the format's version and `factory:version`. In hierarchical layouts a
first level of two digits is the short form, one of three the long form.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from metadata.store import MetadataError

SHORT_ID_LIMIT = 0x7FFFFFFF
"""Ids below it have the short path (Apache compares with Integer.MAX_VALUE, exclusively)."""
ID_LIMIT = 1 << 63
LAYOUT_FORMAT_VERSION = 2
_PACKAGE = "org.apache.bookkeeper.meta."
_SHORT = re.compile(r"(\d{2})/(\d{4})/L(\d{4})")
_LONG = re.compile(r"(\d{3})/(\d{4})/(\d{4})/(\d{4})/L(\d{4})")
_FLAT = re.compile(r"L(\d{10,19})")


class UnknownLayout(Exception):
    """LAYOUT names a manager that this software does not know; the message says which."""


@dataclass(frozen=True, slots=True)
class LedgerLayout:
    """One of the managers. `name` is the word in metadataServiceUri (`zk+hierarchical://`), `id_limit` bounds its ids."""

    name: str
    factory: str
    factory_version: int
    id_limit: int
    relative_path: Callable[[int], str]

    @property
    def text(self) -> bytes:
        """Text of the LAYOUT node."""
        return f"{LAYOUT_FORMAT_VERSION}\n{_PACKAGE}{self.factory}:{self.factory_version}".encode()

    def path(self, root: str, ledger_id: int) -> str:
        """MetadataError for an id that has no place in this layout."""
        if not 0 <= ledger_id < self.id_limit:
            raise MetadataError(f"ledger id {ledger_id}: the {self.name} layout has ids from 0 to {self.id_limit - 1}")
        return f"{root}/{self.relative_path(ledger_id)}"

    def parents(self, root: str, ledger_id: int) -> list[str]:
        """The nodes between the root and the ledger's, deepest first: they go when they are empty."""
        parents = []
        path = self.path(root, ledger_id).rpartition("/")[0]
        while path != root:
            parents.append(path)
            path = path.rpartition("/")[0]
        return parents

    def id_at(self, relative_path: str) -> int | None:
        """The ledger at a path below the root; None when the path is not a ledger's."""
        for form in (_SHORT, _LONG, _FLAT):
            match = form.fullmatch(relative_path)
            if match is not None:
                ledger_id = int("".join(match.groups()))
                fits = ledger_id < self.id_limit and self.relative_path(ledger_id) == relative_path
                return ledger_id if fits else None
        return None


def short_path(ledger_id: int) -> str:
    digits = f"{ledger_id:010d}"
    return f"{digits[:2]}/{digits[2:6]}/L{digits[6:]}"


def long_path(ledger_id: int) -> str:
    digits = f"{ledger_id:019d}"
    return f"{digits[:3]}/{digits[3:7]}/{digits[7:11]}/{digits[11:15]}/L{digits[15:]}"


def short_or_long_path(ledger_id: int) -> str:
    return short_path(ledger_id) if ledger_id < SHORT_ID_LIMIT else long_path(ledger_id)


def flat_path(ledger_id: int) -> str:
    return f"L{ledger_id:010d}"


HIERARCHICAL = LedgerLayout("hierarchical", "HierarchicalLedgerManagerFactory", 1, ID_LIMIT, short_or_long_path)
LONG_HIERARCHICAL = LedgerLayout("longhierarchical", "LongHierarchicalLedgerManagerFactory", 1, ID_LIMIT, long_path)
LEGACY_HIERARCHICAL = LedgerLayout(
    "legacyhierarchical", "LegacyHierarchicalLedgerManagerFactory", 1, SHORT_ID_LIMIT, short_path
)
FLAT = LedgerLayout("flat", "FlatLedgerManagerFactory", 1, SHORT_ID_LIMIT, flat_path)
LAYOUTS = (HIERARCHICAL, LONG_HIERARCHICAL, LEGACY_HIERARCHICAL, FLAT)


def parse_layout(data: bytes) -> LedgerLayout:
    """The layout that LAYOUT names; UnknownLayout."""
    for layout in LAYOUTS:
        if data.strip() == layout.text:
            return layout
    raise UnknownLayout(f"LAYOUT is {data!r}, which is not a layout that this software knows")
