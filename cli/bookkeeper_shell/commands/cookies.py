"""Commands about cookies: what the cluster remembers of a bookie's name and directories (`/ledgers/cookies`)."""

from pathlib import Path

from google.protobuf import text_format

from bookie.server.registration import COOKIE_VERSION, BookieIdentity, encode_cookie
from bookkeeper.repair.registered import COOKIES, delete_cookie
from cli.bookkeeper_cluster.cluster import Cluster, checked_bookie_id
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage
from metadata.store import MUST_NOT_EXIST, BadVersion
from wire.generated.ledger_metadata_pb2 import CookieFormat

OLDEST_TEXT_VERSION = 3
"""Before it a cookie was plain lines."""


async def create(shell: Shell, given: Given) -> int:
    bookie_id, cookie = _bookie_id(given), _cookie_in(given)
    async with shell.metadata() as store:
        try:
            await store.put(f"{COOKIES}/{bookie_id}", cookie, MUST_NOT_EXIST)
        except BadVersion:
            raise CommandFailed(f"Cookie already exist for bookie '{bookie_id}': `cookie_update` replaces it") from None
    return 0


async def update(shell: Shell, given: Given) -> int:
    bookie_id, cookie = _bookie_id(given), _cookie_in(given)
    async with shell.metadata() as store:
        found = await store.get(f"{COOKIES}/{bookie_id}")
        if found is None:
            raise CommandFailed(f"Cookie not found for bookie '{bookie_id}' to update: `cookie_create` makes one")
        await store.put(f"{COOKIES}/{bookie_id}", cookie, found.stat.version)
    return 0


async def delete(shell: Shell, given: Given) -> int:
    bookie_id = _bookie_id(given)
    async with shell.metadata() as store:
        if not await delete_cookie(store, bookie_id):
            raise CommandFailed(f"Cookie not found for bookie '{bookie_id}'")
    return 0


async def get(shell: Shell, given: Given) -> int:
    bookie_id = _bookie_id(given)
    async with shell.metadata() as store:
        found = await store.get(f"{COOKIES}/{bookie_id}")
    if found is None:
        raise CommandFailed(f"Cookie not found for bookie '{bookie_id}'")
    shell.say(f"Cookie for bookie '{bookie_id}' is:\n---\n{found.value.decode(errors='replace')}\n---")
    return 0


async def generate(shell: Shell, given: Given) -> int:
    bookie_id = _bookie_id(given)
    missing = [f"-{option}" for option in ("j", "l", "o") if not given.text(option)]
    if missing:
        raise WrongUsage(f"{', '.join(missing)} needed")
    if given.has("ix"):
        raise CommandFailed("-ix: a bookie has no index directories here, the index is beside the entry logs: leave it out")
    instance_id = given.text("i")
    if not given.has("i"):
        async with shell.metadata() as store:
            instance_id = await Cluster(store).instance_id()
    journals, ledgers = (tuple(given.text(option).split(",")) for option in ("j", "l"))
    identity = BookieIdentity(bookie_id, "", 0, journals, ledgers, instance_id)
    shell.write_file(given.text("o"), encode_cookie(identity))
    shell.say(f"Successfully saved the generated cookie to {given.text('o')}")
    return 0


def _bookie_id(given: Given) -> str:
    if len(given.arguments) != 1:
        raise WrongUsage("expected one <bookie id>")
    return checked_bookie_id(given.arguments[0])


def _cookie_in(given: Given) -> bytes:
    """The file's bytes, when they are a cookie. CommandFailed, WrongUsage."""
    if not given.has("cf"):
        raise WrongUsage("-cf <file> is needed")
    path = Path(given.text("cf"))
    if not path.is_file():
        raise CommandFailed(f"Cookie file '{path}' doesn't exist.")
    data = path.read_bytes()
    version, _, text = data.decode(errors="replace").partition("\n")
    try:
        if not OLDEST_TEXT_VERSION < int(version) <= COOKIE_VERSION:
            raise ValueError(f"version {version}")
        text_format.Parse(text, CookieFormat(), allow_unknown_field=True)
    except (ValueError, text_format.ParseError) as error:
        raise CommandFailed(f"{path} is no cookie ({error}): `cookie_generate` writes one") from error
    return data
