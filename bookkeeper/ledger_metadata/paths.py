"""Paths of BookKeeper's nodes in the metadata tree, and of ledgers in Pulsar's layout, hierarchical. Pure.

The other layouts: `bookkeeper.ledger_metadata.layouts`.
"""

from bookkeeper.ledger_metadata.layouts import HIERARCHICAL

ROOT = "/ledgers"
LAYOUT = f"{ROOT}/LAYOUT"
INSTANCE_ID = f"{ROOT}/INSTANCEID"
AVAILABLE = f"{ROOT}/available"
READ_ONLY = f"{AVAILABLE}/readonly"
ID_GENERATOR = f"{ROOT}/idgen"
LONG_ID_GENERATOR = f"{ROOT}/idgen-long"


def ledger_path(ledger_id: int) -> str:
    """`/ledgers/00/0000/L0007`, or the long form `/ledgers/000/0000/0021/4748/L3647`."""
    return HIERARCHICAL.path(ROOT, ledger_id)


def parents_of(ledger_id: int) -> list[str]:
    """The nodes between the root and the ledger's, deepest first: they go when they are empty."""
    return HIERARCHICAL.parents(ROOT, ledger_id)
