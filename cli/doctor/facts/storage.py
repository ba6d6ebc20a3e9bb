"""Facts of directories: VERSION files, what can be written, disks, whether what is stored can be read. Changes nothing.

In the directories it makes one file without a name, and that only where no server runs on them. Damage is looked for in a
stopped bookie of ours: headers, checkpoint, index and journal always, every block of the entry logs up to a bound.
"""

import asyncio
import fcntl
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bookie.errors import BookieStartError
from bookie.journal.files import journal_ids
from bookie.journal.replay import JournalReplay
from bookie.settings import BookieSettings
from bookie.stored_files import checkpoint_of, consistency_errors, cookie_of
from bookie.stripes import stripe_settings
from cli.bookkeeper_shell.read_only_disk import ReadOnlyDisk
from cli.doctor.check import Facts
from cli.doctor.checks.storage import Directory, DiskUse

JOURNAL_KEYS, LEDGER_KEYS = ("journalDirectories", "journalDirectory"), ("ledgerDirectories",)
LOG_BYTES_MAX = 1 << 30
"""Total size of entry logs that are read through; of larger ones only the index is read, unless the operator asks for more."""
DAMAGES_MAX = 100
NAMES = ("directories", "journal_files", "damages", "metadata_file", "disks")


def storage_facts(data_directory: Path, settings: Mapping[str, str], *, deep: bool = False) -> Facts:
    """Facts of the directories that the settings name, or of those of the standalone or bookie below the data directory."""
    journals, ledgers = (_named(settings, keys) for keys in (JOURNAL_KEYS, LEDGER_KEYS))
    if not journals and not ledgers:
        journals, ledgers = _found(data_directory)
    journals, ledgers = _stripes(journals, ledgers)
    runs = _is_held(data_directory / "lock")
    found: dict[str, Any] = {"disks": tuple(_disks(data_directory, [*journals, *ledgers]))}
    missing: dict[str, str] = {}
    everything = tuple(_directory(path, runs=runs) for path in dict.fromkeys((*journals, *ledgers)))
    if any(each.there for each in everything):
        found["directories"] = everything
        found["journal_files"] = sum(
            1 for path in journals for pattern in ("current/*.txn", "*.journal") for _ in path.glob(pattern)
        )
    else:
        missing = dict.fromkeys(("directories", "journal_files"), f"no bookie's directories in {data_directory}")
    _damages(found, missing, journals, ledgers, runs=runs, deep=deep)
    _metadata(found, missing, data_directory / "metadata" / "metadata.sqlite", runs=runs)
    return Facts(found, missing)


def _named(settings: Mapping[str, str], keys: Sequence[str]) -> list[Path]:
    return [Path(each.strip()) for key in keys for each in settings.get(key, "").split(",") if each.strip()]


def _found(data_directory: Path) -> tuple[list[Path], list[Path]]:
    """A standalone's; else those with a VERSION file, and those beside them that hold files of a bookie.

    Apache's bookie has its files in `current` below; ours at the top.
    """
    own = data_directory / "bookkeeper"
    if own.is_dir():
        return [own / "journal"], [own / "ledgers"]
    marked = {_directory_of(path) for pattern in ("VERSION", "*.journal", "*.log", "*.txn", "checkpoint")
              for depth in ("", "*/", "*/*/") for path in data_directory.glob(depth + pattern)}  # fmt: skip
    journals = sorted(path for path in marked if "journal" in path.name)
    return journals, sorted(marked - set(journals) - {data_directory})


def _stripes(journals: list[Path], ledgers: list[Path]) -> tuple[list[Path], list[Path]]:
    """A directory that several pairs share has a folder for each (`bookie.stripes`)."""
    if not (journals and ledgers) or not any((path / "0").is_dir() for path in (*journals, *ledgers)):
        return journals, ledgers
    parts = stripe_settings(BookieSettings(tuple(map(str, journals)), tuple(map(str, ledgers))))
    return [Path(part.journal_directory) for part in parts], [Path(part.ledger_directory) for part in parts]


def _directory_of(file: Path) -> Path:
    return file.parent.parent if file.parent.name == "current" else file.parent


def _disks(data_directory: Path, named: Sequence[Path]) -> Iterator[DiskUse]:
    """Each file system once, by one directory; one that is not there yet is judged by its nearest parent."""
    metadata = data_directory / "metadata"
    metadata_on = metadata.stat().st_dev if metadata.is_dir() else None
    seen: set[int] = set()
    for place in (data_directory, *named, *([metadata] if metadata_on is not None else [])):
        there = nearest(place)
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield disk_use(there)._replace(has_metadata=device == metadata_on)


def nearest(place: Path) -> Path:
    """The path, or its nearest parent that exists."""
    return next((each for each in (place, *place.absolute().parents) if each.is_dir()), Path("/"))


def disk_use(place: Path) -> DiskUse:
    state = os.statvfs(place)
    size = state.f_frsize
    return DiskUse(str(place), state.f_blocks * size, state.f_bavail * size, state.f_files, state.f_favail)


def _directory(path: Path, *, runs: bool) -> Directory:
    if not path.is_dir():
        return Directory(str(path), None, there=False, has_files=False)
    versions = [each for each in (path / "current" / "VERSION", path / "VERSION") if each.is_file()]
    cookie = versions[0].read_text(errors="replace") if versions else None
    has_files = any(each.name != "LIMBO" for each in path.iterdir())
    return Directory(str(path), cookie, path.stat().st_uid == os.geteuid(), True, has_files, "" if runs else _unwritable(path))


def _unwritable(path: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=path):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _is_held(lock: Path) -> bool:
    """Whether a standalone runs on it."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


# ---- What is stored


def _damages(
    found: dict[str, Any], missing: dict[str, str], journals: Sequence[Path], ledgers: Sequence[Path], *, runs: bool, deep: bool
) -> None:
    if runs:
        missing["damages"] = "a server runs on these directories: its own scrub looks (localScrubInterval)"
    elif not all((path / "VERSION").is_file() for path in (*journals, *ledgers)) or not (journals and ledgers):
        missing["damages"] = "no directories of a bookie of this software, each with its VERSION"
    else:
        settings = BookieSettings(tuple(map(str, journals)), tuple(map(str, ledgers)))
        size = sum(path.stat().st_size for directory in ledgers for path in directory.glob("*.log"))
        found["damages"] = tuple(asyncio.run(_damaged(settings, through=deep or size <= LOG_BYTES_MAX)))


async def _damaged(settings: BookieSettings, *, through: bool) -> list[str]:
    disk, told = ReadOnlyDisk(), []
    for part in stripe_settings(settings):
        try:
            checkpoint = await checkpoint_of(disk, part.ledger_directory)
            secret = (await cookie_of(disk, part.journal_directory)).secret
            replay = JournalReplay(
                disk,
                part.journal_directory,
                secret,
                checkpoint.mark,
                part.journal_alignment_size,
                ended=checkpoint.journal_ended,
            )
            async for _ in replay.frames():
                continue
            if not await journal_ids(disk, part.journal_directory):
                told.append(f"{part.journal_directory}: no journal file is there, and a bookie that was in use has one always")
        except (BookieStartError, OSError) as error:
            told.append(str(error))
    try:
        if through and not told:
            async for each in consistency_errors(disk, settings):
                told.append(each)
                if len(told) >= DAMAGES_MAX:
                    break
    except (BookieStartError, OSError) as error:
        told.append(str(error))
    return told


def _metadata(found: dict[str, Any], missing: dict[str, str], file: Path, *, runs: bool) -> None:
    if runs or not file.is_file():
        missing["metadata_file"] = "the standalone runs, and holds its metadata" if runs else f"no {file}"
        return
    try:
        found["metadata_file"] = _sqlite_problem(file)
    except OSError as error:
        missing["metadata_file"] = f"{file} could not be copied to be looked at: {error}"


def _sqlite_problem(file: Path) -> str:
    """Looked at in a copy, with its log: to open it in its place would write beside it."""
    with tempfile.TemporaryDirectory(prefix="doctor-") as scratch:
        copy = Path(scratch) / file.name
        for suffix in ("", "-wal"):
            part = file.with_name(file.name + suffix)
            if part.is_file():
                shutil.copyfile(part, f"{copy}{suffix}")
        try:
            with closing(sqlite3.connect(copy)) as connection:
                (told,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                connection.execute("SELECT count(*) FROM nodes").fetchone()
        except sqlite3.Error as error:
            return f"{file}: {error}"
    return "" if told == "ok" else f"{file}: {told}"
