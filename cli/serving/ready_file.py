"""The file of `--json-ready`: written when a server is ready, so that its starter need not read its log."""

import errno
import logging
from pathlib import Path

from ports.logs import line

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
log = logging.getLogger("interpulse")


def write_whole(path: Path, text: str) -> None:
    """Writes the file so that no reader sees half of it. A full disk does not end a server that is ready: its
    log has the ready line too. OSError."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(text + "\n")
        partial.replace(path)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        log.error(line("the ready file is not written, make room on its disk", path=path, error=error, ready=text))
        partial.unlink(missing_ok=True)
