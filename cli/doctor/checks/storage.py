"""The directories of a bookie and of a standalone: whose they are, what is missing, what is damaged, how full. Pure."""

from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, named

LOG_FILES_WARN = 64
DISK_WARN, DISK_FAIL = 0.90, 0.95
"""Shares at which Apache's bookies warn, and stop taking writes (diskUsageWarnThreshold, diskUsageThreshold)."""
INODES_WARN, INODES_FAIL = 0.90, 0.98
RESTORE = (
    "Do not start the bookie on it, and delete nothing: put the directory back from its disk or a copy. If it is lost "
    "for good, and "
    "the other bookies have the copies: bookkeeper shell decommissionbookie, then start with empty directories"
)


class DiskUse(NamedTuple):
    """Bytes and inodes of the file system that a directory is on; inodes 0 where it counts none."""

    path: str
    bytes_total: int
    bytes_free: int
    inodes_total: int
    inodes_free: int
    has_metadata: bool = False
    """A standalone's: beside them it needs room for topics, subscriptions and cursors."""

    @property
    def used(self) -> float:
        return 1 - self.bytes_free / max(1, self.bytes_total)

    @property
    def inodes_used(self) -> float:
        return 1 - self.inodes_free / self.inodes_total if self.inodes_total else 0.0


class Directory(NamedTuple):
    """`cookie`: the text of its VERSION file, None where there is none. `unwritable` says why nothing can be written there."""

    path: str
    cookie: str | None
    owned: bool = True
    there: bool = True
    has_files: bool = True
    unwritable: str = ""


Directories = tuple[Directory, ...]
_FIELDS = ("bookieHost", "instanceId", "ledgerDirs", "instance=")


def disks_free(disks: tuple[DiskUse, ...]) -> Verdict:
    worst = max(disks, key=lambda each: each.used)
    level = FAIL if worst.used >= DISK_FAIL else WARN if worst.used >= DISK_WARN else OK
    holds = ", with the metadata: without room topics, subscriptions and ledgers cannot be made" if worst.has_metadata else ""
    evidence = f"{worst.path}: {worst.used:.1%} of {worst.bytes_total >> 20} MiB used, {worst.bytes_free >> 20} MiB free{holds}"
    remedy = (
        f"free or add room on the disk of {worst.path}: what is not Pulsar's there, or by acknowledging backlogs; "
        "bookies become "
        "read-only at diskUsageThreshold (95 %). Never delete files of the bookie by hand: that loses messages"
    )
    return Verdict(level, evidence, remedy)


def disks_inodes(disks: tuple[DiskUse, ...]) -> Verdict:
    worst = max(disks, key=lambda each: each.inodes_used)
    level = FAIL if worst.inodes_used >= INODES_FAIL else WARN if worst.inodes_used >= INODES_WARN else OK
    return Verdict(level, f"{worst.path}: {worst.inodes_used:.1%} of {worst.inodes_total} inodes used")


def directories_there(directories: Directories) -> Verdict:
    """Those that the settings name. A bookie that was never started has none yet, and makes them."""
    gone = [each.path for each in directories if not each.there]
    if not gone or len(gone) == len(directories):
        return Verdict(OK, f"{len(directories) - len(gone)} of {len(directories)} directories are there")
    remedy = f"mount the disk of {gone[0]}, or correct journalDirectories and ledgerDirectories. {RESTORE}"
    return Verdict(FAIL, f"not there, although others of this bookie are: {named(gone)}", remedy)


def directories_writable(directories: Directories) -> Verdict:
    wrong = [each for each in directories if each.unwritable]
    if not wrong:
        return Verdict(OK, "a file can be made in each")
    remedy = f"mount {wrong[0].path} read-write, and let the server's user own it (chown, chmod u+rwx)"
    return Verdict(FAIL, f"cannot be written: {named([f'{each.path} ({each.unwritable})' for each in wrong])}", remedy)


def cookies_present(directories: Directories) -> Verdict:
    """A directory that is in use, and has no VERSION file: it is another disk's, or was emptied."""
    is_used = any(each.cookie is not None or each.has_files for each in directories if each.there)
    without = [each.path for each in directories if each.there and each.cookie is None]
    if without and is_used:
        evidence = f"no VERSION file in {named(without)}, although this bookie has been in use"
        return Verdict(FAIL, evidence, f"mount the disk that belongs at {without[0]}, or put its VERSION file back. {RESTORE}")
    return Verdict(OK, f"{len(directories) - len(without)} of {len(directories)} directories have a VERSION file")


def cookies_agree(directories: Directories) -> Verdict:
    """The same in every directory of a bookie (Apache's Cookie; of ours, `bookie.start.cookie`, all of it)."""
    fields = _FIELDS if len(directories) > 2 else (*_FIELDS, "secret=")  # each pair of directories has a secret of its own
    cookies = {each.path: _identity(each.cookie, fields) for each in directories if each.cookie is not None}
    damaged = [path for path, identity in cookies.items() if not identity]
    if damaged:
        return Verdict(
            FAIL, f"{damaged[0]}/VERSION is empty or damaged", f"put a good copy of {damaged[0]}/VERSION back. {RESTORE}"
        )
    if len(set(cookies.values())) > 1:
        remedy = (
            "these directories are of different bookies: correct journalDirectories and ledgerDirectories, or mount each "
            "disk where it "
            "belongs; change no VERSION file by hand"
        )
        return Verdict(FAIL, f"the VERSION files of {named(list(cookies))} do not agree", remedy)
    return Verdict(OK, "the cookies agree")


def cookie_versions(directories: Directories) -> Verdict:
    """Our own VERSION files; Apache's begin with their number alone."""
    for each in directories:
        version = next((line for line in (each.cookie or "").splitlines() if line.startswith("version=")), "version=1")
        if version != "version=1":
            remedy = f"run the version of the software that wrote {each.path}: this one would not understand its files"
            return Verdict(FAIL, f"{each.path}/VERSION says {version}, this software knows version=1", remedy)
    return Verdict(OK, "every directory has a format that this software knows")


def _identity(cookie: str | None, fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(line.strip() for line in (cookie or "").splitlines() if line.strip().startswith(fields)))


def directories_owned(directories: Directories) -> Verdict:
    foreign = [each.path for each in directories if not each.owned]
    remedy = f"chown -R them to the user that runs the server: {named(foreign)}"
    return (
        Verdict(WARN, f"belong to another user: {named(foreign)}", remedy)
        if foreign
        else Verdict(OK, "all belong to this user")
    )


def log_files(journal_files: int) -> Verdict:
    return Verdict(WARN if journal_files > LOG_FILES_WARN else OK, f"{journal_files} journal files to replay")


def stored_sound(damages: tuple[str, ...]) -> Verdict:
    if not damages:
        return Verdict(OK, "checkpoint, index, entry logs and journal can be read")
    remedy = (
        f"{damages[0].split(' ')[0].rstrip(':')} is damaged. Look at the disk (dmesg, smartctl). {RESTORE}. Where only "
        "some entries are "
        "damaged, the bookie serves the others, and autorecovery copies what lacks from other bookies"
    )
    return Verdict(FAIL, f"{len(damages)} damaged: {'; '.join(damages[:3])}", remedy)


def metadata_sound(problem: str) -> Verdict:
    if not problem:
        return Verdict(OK, "the standalone's metadata file is sound")
    return Verdict(FAIL, problem)


_D = ("directories",)
CHECKS = (
    Check("disk-free", ("disks",), disks_free, "a disk is nearly full", "free or add room; delete no file of a bookie by hand"),
    Check(
        "disk-inodes",
        ("disks",),
        disks_inodes,
        "a file system has few inodes left",
        "remove small files, or make one with more inodes",
    ),
    Check("directories-present", _D, directories_there, "a journal or ledger directory is not there", "mount its disk"),
    Check(
        "directories-writable",
        _D,
        directories_writable,
        "nothing can be written into a directory",
        "mount it read-write, chown it",
    ),
    Check(
        "cookies-present", _D, cookies_present, "a directory in use has no VERSION file", "mount the disk that belongs there"
    ),
    Check(
        "cookies-agree", _D, cookies_agree, "directories of different bookies, or a damaged VERSION", "correct the directories"
    ),
    Check(
        "format-version",
        _D,
        cookie_versions,
        "files of a version that this software does not know",
        "run the one that wrote them",
    ),
    Check(
        "directories-owned", _D, directories_owned, "directories of another user", "chown them to the user that runs the server"
    ),
    Check(
        "journal-files",
        ("journal_files",),
        log_files,
        "very many journal files",
        "checkpoints do not come through: look for a full ledger disk in the log",
    ),
    Check("stored-files", ("damages",), stored_sound, "a damaged or missing file of a bookie", "put a copy back; never delete"),
    Check(
        "metadata-file",
        ("metadata_file",),
        metadata_sound,
        "the standalone's metadata file is damaged",
        "put a copy of metadata/metadata.sqlite back, from a backup that is as new as the bookie's directories; without "
        "it nobody knows "
        "which messages are whose. sqlite3 FILE .recover saves what can be read: work on a copy, and delete nothing",
    ),
)
