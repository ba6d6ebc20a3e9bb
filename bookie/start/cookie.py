"""Cookie: the VERSION file that says whose a directory is. A bookie that came back under its old name with an empty or foreign
directory would answer "no such entry" for what it had acknowledged; so it is refused (apache/bookkeeper#2612, pulsar#8333).

Lines of `key=value`: the format version, the instance (whose cluster this is), the secret that marks journal frames, and of
which of how many pairs of directories it is (`stripe=1/2`; none: the only one).
"""

from dataclasses import dataclass

from bookie.errors import WrongDirectory
from bookie.storage.small_files import TEMPORARY_SUFFIX, make_durable_directory, read_file, replace_file
from ports.disk.disk import Disk
from ports.rng import Rng

VERSION_FILE = "VERSION"
LIMBO_FILE = "LIMBO"
"""See `bookie.start.limbo`."""
FORMAT_VERSION = 1
SECRET_BITS = 128


@dataclass(frozen=True, slots=True)
class Cookie:
    """Content of VERSION."""

    instance_id: str
    secret: bytes
    stripe: tuple[int, int] = (0, 1)
    """Index of this pair of directories, and the number of pairs."""


def encode_cookie(cookie: Cookie) -> bytes:
    index, count = cookie.stripe
    stripe = "" if count == 1 else f"stripe={index}/{count}\n"
    return f"version={FORMAT_VERSION}\ninstance={cookie.instance_id}\nsecret={cookie.secret.hex()}\n{stripe}".encode()


def decode_cookie(data: bytes, path: str) -> Cookie:
    fields = dict(part.split("=", 1) for part in data.decode(errors="replace").splitlines() if "=" in part)
    version = fields.get("version")
    if version != str(FORMAT_VERSION):
        raise WrongDirectory(
            f"{path}: format version {version}, this bookie knows {FORMAT_VERSION}: run the version that wrote it"
        )
    try:
        index, _, count = fields.get("stripe", "0/1").partition("/")
        return Cookie(fields["instance"], bytes.fromhex(fields["secret"]), (int(index), int(count)))
    except (KeyError, ValueError) as error:
        raise WrongDirectory(f"{path} is damaged ({error!r}): put a good copy back") from error


async def claim_directories(
    disk: Disk, journal: str, ledgers: str, in_use: str, instance_id: str, rng: Rng, stripe: tuple[int, int] = (0, 1)
) -> tuple[Cookie, bool]:
    """The cookie of both directories, made when they are new; and whether they are new.

    `in_use` is the file that a bookie makes in the ledger directory once both are stamped. A crash before that is made good.
    """
    for directory in (journal, ledgers):
        await make_durable_directory(disk, directory)
        # A rename by a killed process is visible without being durable: it must be, before anything relies on it.
        await disk.sync_directory(directory)
    stamps = [await _read_stamp(disk, directory) for directory in (journal, ledgers)]
    new = not await disk.exists(f"{ledgers}/{in_use}")
    if new:
        for directory in (ledgers, journal):
            await _check_empty(disk, directory, in_use)
        found = next((stamp for stamp in stamps if stamp), None)
        cookie = found or Cookie(instance_id, rng.getrandbits(SECRET_BITS).to_bytes(SECRET_BITS // 8, "big"), stripe)
        for directory in (ledgers, journal):
            await replace_file(disk, directory, VERSION_FILE, encode_cookie(cookie))
    else:
        cookie = _agreed(stamps, journal, ledgers)
    if cookie.instance_id != instance_id:
        raise WrongDirectory(f"{ledgers} belongs to instance {cookie.instance_id!r}, not to {instance_id!r}")
    if cookie.stripe != stripe:
        raise WrongDirectory(
            f"{ledgers} is number {cookie.stripe[0] + 1} of {cookie.stripe[1]} directories, and it is given as number "
            f"{stripe[0] + 1} of {stripe[1]}: journalDirectories and ledgerDirectories keep their number and their order"
        )
    return cookie, new


def _agreed(stamps: list[Cookie | None], journal: str, ledgers: str) -> Cookie:
    for stamp, directory in zip(stamps, (journal, ledgers), strict=True):
        if stamp is None:
            raise WrongDirectory(
                f"{directory} has no {VERSION_FILE} file although this bookie was in use: is it mounted? was it emptied?"
            )
    first, second = stamps
    if first is None or first != second:
        raise WrongDirectory(f"{journal} and {ledgers} are of different bookies")
    return first


async def _read_stamp(disk: Disk, directory: str) -> Cookie | None:
    path = f"{directory}/{VERSION_FILE}"
    try:
        return decode_cookie(await read_file(disk, path), path)
    except FileNotFoundError:
        return None


async def _check_empty(disk: Disk, directory: str, in_use: str) -> None:
    """Nothing but what a first start that was interrupted leaves."""
    for name in await disk.list_directory(directory):
        if name not in (VERSION_FILE, LIMBO_FILE) and not name.endswith(TEMPORARY_SUFFIX):
            raise WrongDirectory(
                f"{directory} is not empty ({name}), but the bookie's {in_use} file is missing: "
                "put the right directories back, or give empty ones to a new bookie"
            )
