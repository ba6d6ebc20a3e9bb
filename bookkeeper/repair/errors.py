"""Errors of repair; each message says why and what to do."""

from bookkeeper.ledgers import LedgerError


class RepairError(LedgerError):
    """A repair could not be done."""


class RepairRefused(RepairError):
    """The repair must not begin in this state of the cluster."""


class NotEnoughBookies(RepairError):
    """No bookie can take the copies."""


class IncompatibleUnderreplication(RepairError):
    """The under-replication tree has a layout that this software does not know."""
