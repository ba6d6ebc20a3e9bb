"""Errors that keep a bookie from its start. Clients get `wire.bookie.codes.BookieError`."""


class BookieStartError(Exception):
    """The bookie must not start; the message names the file and the remedy."""


class JournalDamaged(BookieStartError):
    """Acknowledged bytes in the middle of the journal cannot be read."""


class StorageDamaged(BookieStartError):
    """A file that names stored ledgers or entry logs cannot be read."""


class WrongDirectory(BookieStartError):
    """The directories are not those of this bookie, or were written by a version this one does not know."""
