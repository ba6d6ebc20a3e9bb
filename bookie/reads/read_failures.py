"""Read failures: the answer for an entry that is here and unreadable, never ENOENTRY (apache/bookkeeper#2908)."""

import errno
import logging

from bookie.storage.block_v1 import DamagedBlock
from bookie.storage.span import Span
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError

PASSING_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""What the host lacks for the moment: no word about the entry, so never EIO, which a client may take for a loss."""
log = logging.getLogger("bookie")


def unreadable(ledger_id: int, entry_id: int, why: str) -> BookieError:
    return BookieError(BookieCode.EIO, ledger_id, f"entry {entry_id} {why}")


def read_failure(ledger_id: int, entry_id: int, span: Span, error: OSError | DamagedBlock) -> BookieError:
    """Logged, too."""
    place = f"entry log {span.log_id:08x} offset {span.offset}: {error}"
    log.error(line("entry cannot be read", ledger=ledger_id, entry=entry_id, place=place))
    if isinstance(error, OSError) and error.errno in PASSING_ERRORS:
        return BookieError(BookieCode.ETOOMANYREQUESTS, ledger_id, f"entry {entry_id} {place}")
    return unreadable(ledger_id, entry_id, place)
