"""Commands about the directories of a bookie that is stopped: remove all it has, or see that a new one may begin."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from bookie.settings import BookieSettings
from bookie.start.cookie import VERSION_FILE
from bookkeeper.repair.registered import COOKIES, delete_cookie, registered_bookies
from cli.bookkeeper_shell.commands.entries import local_bookie_id
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given


async def bookie_format(shell: Shell, given: Given) -> int:
    """Deletes the contents of the directories if they are a bookie's; the directories stay. With -d also the cookie."""
    directories = _directories(shell)
    with _alone_in(directories):
        used = [directory for directory in directories if _names_in(directory)]
        _check_owner(used)
        if used:
            question = f"Are you sure to format Bookie data: {', '.join(map(str, used))}..?"
            if not (given.has("f") if given.has("n") else shell.confirm(question)):
                raise CommandFailed("the data stays as it is" + (": -n formats it with -f only" if given.has("n") else ""))
        for directory in used:
            _empty(directory)
    if given.has("d"):
        bookie_id = local_bookie_id(shell)
        async with shell.metadata() as store:
            if bookie_id in (await registered_bookies(store)).all:
                raise CommandFailed(f"{bookie_id} is registered: its cookie stays until it is stopped")
            if not await delete_cookie(store, bookie_id):
                shell.warn(f"No cookie to remove for {bookie_id}")
    shell.say(f"Bookie format completed: {len(used)} of {len(directories)} directories were in use")
    return 0


async def init_bookie(shell: Shell, given: Given) -> int:
    """Checks that a bookie may begin here with nothing: it stamps its directories and its cookie when it is started."""
    bookie_id = local_bookie_id(shell)
    for directory in _directories(shell):
        if _names_in(directory):
            raise CommandFailed(f"{directory} is not empty: `bookieformat` removes a bookie's files there")
    async with shell.metadata() as store:
        if bookie_id in (await registered_bookies(store)).all:
            raise CommandFailed(f"Bookie with bookieId: {bookie_id} is still registered: stop it first")
        if await store.exists(f"{COOKIES}/{bookie_id}"):
            raise CommandFailed(
                f"Cookie still exists for this bookie: {bookie_id}: if its data are lost for good, "
                f"`decommissionbookie -bookieid {bookie_id}` deletes it after its ledgers were copied"
            )
    shell.say(f"Bookie {bookie_id} can be started: its directories are empty, and the cluster does not know it")
    return 0


def _directories(shell: Shell) -> list[Path]:
    settings = shell.settings(BookieSettings)
    return [Path(each) for each in dict.fromkeys((*settings.journal_directories, *settings.ledger_directories))]


def _names_in(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if directory.exists() else []


def _check_owner(directories: Sequence[Path]) -> None:
    """CommandFailed for one that no bookie has stamped: a wrong path in a configuration must not cost anything."""
    for directory in directories:
        stamps = [directory / VERSION_FILE, *directory.glob(f"[0-9]*/{VERSION_FILE}")]
        if not any(stamp.is_file() for stamp in stamps):
            raise CommandFailed(f"{directory} has no {VERSION_FILE} file: it is no bookie's, and stays as it is")


def _empty(directory: Path) -> None:
    for name in _names_in(directory):
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextlib.contextmanager
def _alone_in(directories: Sequence[Path]) -> Iterator[None]:
    """CommandFailed while a bookie runs on one of them: it holds them locked."""
    with contextlib.ExitStack() as held:
        for directory in directories:
            if directory.exists():
                descriptor = os.open(directory, os.O_RDONLY)
                held.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise CommandFailed(f"{directory} is in use by another process: stop the bookie first") from None
        yield
