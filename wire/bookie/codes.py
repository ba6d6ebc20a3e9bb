"""BookKeeper's error codes and the error that carries them across the bookie boundary.

Source: BookKeeper's v2 wire codes (`BookieProtocol`). "No such entry" is a promise that the entry was never accepted;
damage, a missing file or an unclean start must be EIO or EUNKNOWNLEDGERSTATE instead.
"""

from enum import IntEnum


class BookieCode(IntEnum):
    """Code in a bookie's answer."""

    EOK = 0
    ENOLEDGER = 1
    ENOENTRY = 2
    EBADREQ = 100
    EIO = 101
    EUA = 102
    EBADVERSION = 103
    EFENCED = 104
    EREADONLY = 105
    ETOOMANYREQUESTS = 106
    EUNKNOWNLEDGERSTATE = 107


class BookieError(Exception):
    """A bookie refused or failed; `code` says which way, `ledger_id` where."""

    def __init__(self, code: BookieCode, ledger_id: int, detail: str = "") -> None:
        super().__init__(f"{code.name} ledger {ledger_id} {detail}".rstrip())
        self.code = code
        self.ledger_id = ledger_id
        self.detail = detail


class NotAsOne(Exception):
    """Entries that came as one mix cannot be answered as one, or not be taken as one: each has to be added by itself."""
