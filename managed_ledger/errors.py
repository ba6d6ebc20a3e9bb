"""Errors of managed ledgers and cursors. Apart from the contract, so that the pure machines can raise them."""


class ManagedLedgerError(Exception):
    """A managed-ledger operation failed; the topic should be closed and loaded again, nothing acknowledged is lost."""


class MetadataFull(ManagedLedgerError):
    """The metadata has no room: nothing was written, and a later write may succeed."""


class AppendRefused(ManagedLedgerError):
    """Bookies take nothing now: what was appended is certainly stored nowhere. Reading, cursors and later appends go on."""


class ManagedLedgerFenced(ManagedLedgerError):
    """Another owner has taken the managed ledger over."""


class ManagedLedgerTerminated(ManagedLedgerError):
    """No more entries are accepted, for ever."""


class ManagedLedgerNotFound(ManagedLedgerError):
    """The managed ledger does not exist, and its creation was not requested."""


class ManagedLedgerExcluded(ManagedLedgerError):
    """The managed ledger does not exist and cannot be made: something else has its name."""


class BrokenMetadata(ManagedLedgerError):
    """A value of the metadata store or of a cursor ledger cannot be what Apache or we wrote. The message names it."""


class NonRecoverableLedger(ManagedLedgerError):
    """A ledger that the metadata names is gone or damaged (Apache: NonRecoverableLedgerException).

    With autoSkipNonRecoverableData what cannot be had is skipped, logged and counted instead.
    """


class InvalidCursorPosition(ManagedLedgerError):
    """An acknowledgement of a future position, or a reset to a place that cannot be."""
