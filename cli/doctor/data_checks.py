"""A stopped bookie's directories: cookies, their owner, how much is to be replayed. Pure."""

from typing import NamedTuple

from cli.doctor.checks import FAIL, OK, WARN, Check, Verdict

LOG_FILES_WARN = 64


class Directory(NamedTuple):
    """`cookie`: the text of its VERSION file, None where there is none."""

    path: str
    cookie: str | None
    owned: bool


Directories = tuple[Directory, ...]


def cookies_present(directories: Directories) -> Verdict:
    without = [each.path for each in directories if each.cookie is None]
    if without and len(without) < len(directories):
        return Verdict(FAIL, f"no VERSION file in {', '.join(without)}, but in the others")
    return Verdict(OK, f"{len(directories) - len(without)} of {len(directories)} directories have a VERSION file")


def cookies_agree(directories: Directories) -> Verdict:
    """The same in every directory of a bookie (Apache's Cookie; of ours, `bookie.cookie`, the cluster)."""
    cookies = {_identity(each.cookie) for each in directories if each.cookie is not None}
    if any(not identity for identity in cookies):
        return Verdict(FAIL, "a VERSION file is empty or damaged")
    return Verdict(FAIL, f"{len(cookies)} different cookies") if len(cookies) > 1 else Verdict(OK, "the cookies agree")


def _identity(cookie: str | None) -> tuple[str, ...]:
    fields = ("bookieHost", "instanceId", "ledgerDirs", "instance=")
    return tuple(sorted(line.strip() for line in (cookie or "").splitlines() if line.strip().startswith(fields)))


def directories_owned(directories: Directories) -> Verdict:
    foreign = [each.path for each in directories if not each.owned]
    return Verdict(WARN, f"belong to another user: {', '.join(foreign)}") if foreign else Verdict(OK, "all belong to this user")


def log_files(journal_files: int) -> Verdict:
    return Verdict(WARN if journal_files > LOG_FILES_WARN else OK, f"{journal_files} journal files to replay")


_D = ("directories",)
CHECKS = (
    Check(
        "cookies-present",
        _D,
        cookies_present,
        "mount the missing disk; if it is lost for good, see bin/bookkeeper shell cookie_generate",
    ),
    Check(
        "cookies-agree",
        _D,
        cookies_agree,
        "these directories are of different bookies: correct journalDirectories and ledgerDirectories",
    ),
    Check("directories-owned", _D, directories_owned, "chown them to the user that runs the server"),
    Check(
        "journal-files",
        ("journal_files",),
        log_files,
        "checkpoints do not come through: look for a full ledger disk in the log",
    ),
)
