"""What repair refuses or cannot do; each message says why and what to do."""

from bookkeeper.ledgers import LedgerError


class RepairError(LedgerError):
    """A repair could not be done."""


class RepairRefused(RepairError):
    """It must not begin as things are."""


class NotEnoughBookies(RepairError):
    """There is nobody to take the copies."""


class IncompatibleUnderreplication(RepairError):
    """The under-replication tree has a layout that this software does not know."""
