"""Where ledgers are in the metadata tree: Apache's HierarchicalLedgerManager. Pure."""

ROOT = "/ledgers"
LAYOUT = f"{ROOT}/LAYOUT"
INSTANCE_ID = f"{ROOT}/INSTANCEID"
AVAILABLE = f"{ROOT}/available"
READ_ONLY = f"{AVAILABLE}/readonly"
ID_GENERATOR = f"{ROOT}/idgen"
LONG_ID_GENERATOR = f"{ROOT}/idgen-long"

LAYOUT_TEXT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
SHORT_ID_LIMIT = 0x7FFFFFFF
"""Ids below it have the short path (Apache compares with Integer.MAX_VALUE, exclusively)."""


def ledger_path(ledger_id: int) -> str:
    """`/ledgers/00/0000/L0007`, or the long form `/ledgers/000/0000/0021/4748/L3647`."""
    if ledger_id < SHORT_ID_LIMIT:
        digits = f"{ledger_id:010d}"
        return f"{ROOT}/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"
    digits = f"{ledger_id:019d}"
    return f"{ROOT}/{digits[:3]}/{digits[3:7]}/{digits[7:11]}/{digits[11:15]}/L{digits[15:]}"


def parents_of(ledger_id: int) -> list[str]:
    """The nodes between the root and the ledger's, deepest first: they go when they are empty."""
    parents = []
    path = ledger_path(ledger_id).rpartition("/")[0]
    while path != ROOT:
        parents.append(path)
        path = path.rpartition("/")[0]
    return parents
