"""Leftovers: which ledgers the metadata hold, and whose they are. Pure: reads a tree.

Checked: every ledger that the log's node or a cursor's node names is there; ledgers without a name are only the leftovers that
ADR 12 allows, at most one for each crash and each maker of ledgers: a data ledger that was made and not listed yet (nothing
is in it), a cursor's ledger.
"""

from collections.abc import Iterator

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ROOT as LEDGERS
from managed_ledger.cursor.state import NO_LEDGER, decode_node
from managed_ledger.ledgers.info import decode_info
from managed_ledger.ledgers.metadata_driver import ROOT
from metadata.tree import Tree
from simulation.checks.history import Violation


def check_leftovers(tree: Tree, name: str, crashes: int) -> None:
    """`crashes`: how many there were."""
    stored = dict(stored_ledgers(tree))
    named = named_ledgers(tree, name)
    if missing := sorted(named - stored.keys()):
        raise Violation(f"ledgers {missing} are named and do not exist")
    orphans = {ledger_id: metadata for ledger_id, metadata in stored.items() if ledger_id not in named}
    for ledger_id, metadata in orphans.items():
        if "pulsar/cursor" not in metadata.custom_metadata and not _never_used(metadata):
            raise Violation(f"ledger {ledger_id} of the log is an orphan: no node names it")
    makers = 1 + len(tree.children(ROOT + name))
    if len(orphans) > crashes * makers:
        raise Violation(f"{crashes} crashes left {len(orphans)} orphans: {sorted(orphans)}")


def named_ledgers(tree: Tree, name: str) -> set[int]:
    """Ledgers that the nodes name, without those marked for deletion, which may be gone already."""
    path = ROOT + name
    node = tree.get(path)
    named = (
        set() if node is None else {each.ledger_id for each in decode_info(name, node.value).ledgers if not each.is_deleting}
    )
    for cursor in tree.children(path):
        found = tree.get(f"{path}/{cursor}")
        assert found is not None
        named.add(decode_node(cursor, found.value).cursors_ledger_id)
    return named - {NO_LEDGER}


def stored_ledgers(tree: Tree, path: str = LEDGERS) -> Iterator[tuple[int, LedgerMetadata]]:
    for child in tree.children(path):
        below = f"{path}/{child}"
        if child.startswith("L") and child[1:].isdigit():
            node = tree.get(below)
            assert node is not None
            yield int(below.removeprefix(LEDGERS).replace("/", "").replace("L", "")), decode_ledger_metadata(node.value)
        elif child.isdigit():
            yield from stored_ledgers(tree, below)


def _never_used(metadata: LedgerMetadata) -> bool:
    """Whether the ledger is open: a ledger that was written to has been closed."""
    return metadata.state is LedgerState.OPEN
