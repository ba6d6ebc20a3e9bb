"""The metrics of cursors: saves of acknowledgements, their places and their bytes. Pure.

Names are Apache's (ManagedCursorMetrics); its node is ZooKeeper's. Reads of a cursor's ledger are not counted.
"""

from collections.abc import Sequence

from managed_ledger.meters import CursorFacts

from .text import escaped

CURSOR = tuple(
    (f"pulsar_ml_cursor_{name}", "gauge")
    for name in (
        "nonContiguousDeletedMessagesRange",
        "persistLedgerSucceed",
        "persistLedgerErrors",
        "persistZookeeperSucceed",
        "persistZookeeperErrors",
        "writeLedgerSize",
        "writeLedgerLogicalSize",
    )
)


def cursor_label(cluster: str, ledger_name: str, cursor_name: str) -> str:
    namespace, _, _ = ledger_name.rpartition("/")
    values = {"cluster": cluster, "namespace": namespace, "ledger_name": ledger_name, "cursor_name": cursor_name}
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in values.items()) + "} "


def cursor_row(facts: CursorFacts, copies: int) -> Sequence[float]:
    """Bookies have `copies` of each written byte."""
    ledger, node = facts.meters.ledger, facts.meters.node
    size = facts.meters.ledger_bytes
    return (facts.ranges, ledger.succeeded, ledger.failed, node.succeeded, node.failed, size * copies, size)
