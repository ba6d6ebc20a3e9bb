"""Why a bookie does not start, or does not know. What a client gets is `wire.bookie.codes.BookieError`."""


class BookieStartError(Exception):
    """The bookie must not start; the message names the file and the remedy."""


class JournalDamaged(BookieStartError):
    """Acknowledged bytes in the middle of the journal cannot be read."""


class StorageDamaged(BookieStartError):
    """A file that names what is stored cannot be read."""


class WrongDirectory(BookieStartError):
    """The directories are not those of this bookie, or were written by a version this one does not know."""
