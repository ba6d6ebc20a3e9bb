"""Limbo: a bookie that lost its journal, or came back empty under its old name, and knows that it does not know.

Without dataIntegrityChecking and dataIntegrityStampMissingCookies such a bookie does not start. With both (BP-46) it does:
every ledger that it may have held is put into limbo, until `leave_limbo`. Entries that are here are read; a miss, the last
entry and the list of entries are "unknown" and never "no such entry"; and the ledger is fenced: a fence may have been lost.
`cli.bookie.integrity` copies what is missing. Why so: docs/adr/0018-a-bookie-that-lost-something.md.
The file LIMBO is durable before anything of the loss is made good: a start that is cut off begins with it again.
"""

from bookie.settings import BookieSettings
from bookie.start.cookie import LIMBO_FILE, VERSION_FILE
from bookie.storage.small_files import TEMPORARY_SUFFIX, make_durable_directory, read_file, replace_file
from bookie.storage.storage import CHECKPOINT
from ports.disk.disk import Disk


async def find_loss(disk: Disk, settings: BookieSettings, *, was_known: bool) -> bool:
    """Whether something is lost that the settings allow to be; then the directories are as `claim_directories` takes them.

    `was_known`: the cluster has this bookie's cookie, so that empty directories are not those of a new one.
    """
    journal, ledgers = settings.journal_directory, settings.ledger_directory
    pending = await disk.exists(f"{ledgers}/{LIMBO_FILE}")
    if not settings.allows_limbo:
        return pending
    for directory in (journal, ledgers):
        await make_durable_directory(disk, directory)
    in_use = await disk.exists(f"{ledgers}/{CHECKPOINT}")
    journal_is_empty = not any(not name.endswith(TEMPORARY_SUFFIX) for name in await disk.list_directory(journal))
    if in_use and journal_is_empty:
        await replace_file(disk, ledgers, LIMBO_FILE, b"the journal is lost\n")
        await replace_file(disk, journal, VERSION_FILE, await read_file(disk, f"{ledgers}/{VERSION_FILE}"))
        return True
    if not in_use and was_known and not pending:
        await replace_file(disk, ledgers, LIMBO_FILE, b"everything is lost\n")
        return True
    return pending


async def forget_loss(disk: Disk, settings: BookieSettings) -> None:
    """Every ledger that may have been here is in limbo, durably."""
    await disk.remove(f"{settings.ledger_directory}/{LIMBO_FILE}")
    await disk.sync_directory(settings.ledger_directory)
