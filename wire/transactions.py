"""TxnId and TxnAction: which transaction, and how it ends. Pure values, used on every layer.

Apache's TxnID and PulsarApi.TxnAction.
"""

from enum import IntEnum
from typing import NamedTuple


class TxnId(NamedTuple):
    """`most`: the coordinator's number; `least`: the transaction's sequence number there. Each of 64 bits."""

    most: int
    least: int

    def __str__(self) -> str:
        return f"({self.most},{self.least})"


class TxnAction(IntEnum):
    """PulsarApi.TxnAction."""

    COMMIT = 0
    ABORT = 1
