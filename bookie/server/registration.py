"""Registration: that the cluster knows this bookie, under whose name its directories are, and whether it takes adds.

Nodes and bytes are Apache's (ZKRegistrationManager): `available/<id>` and `available/readonly/<id>` are ephemeral and hold a
BookieServiceInfoFormat, `cookies/<id>` stays and holds a CookieFormat as text. Owns these nodes; starts no bookie.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf import text_format

from bookie.errors import WrongDirectory
from metadata.sessions import SessionEvent, Sessions
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, NoNode
from ports.logs import line
from wire.generated.ledger_metadata_pb2 import BookieServiceInfoFormat, CookieFormat

log = logging.getLogger("bookie.server")

COOKIE_VERSION = 5
STATE_SECONDS = 1.0
"""Between two looks at whether the bookie takes adds."""
RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BookieIdentity:
    """Identity of a bookie in the cluster: `bookie_id` is its name for ever, host and port are where it is now."""

    bookie_id: str
    host: str
    port: int
    journal_directories: tuple[str, ...]
    ledger_directories: tuple[str, ...]
    instance_id: str
    """Id of the cluster."""


def service_info(identity: BookieIdentity) -> bytes:
    """Value of the bookie's node: its address."""
    endpoint = BookieServiceInfoFormat.Endpoint(
        id="bookie", port=identity.port, host=identity.host, protocol="bookie-rpc", auth=(), extensions=()
    )
    return BookieServiceInfoFormat(endpoints=[endpoint]).SerializeToString()


def encode_cookie(identity: BookieIdentity) -> bytes:
    """Bytes of a cookie as Apache's Cookie writes it."""
    directories = identity.ledger_directories
    cookie = CookieFormat(
        bookieHost=identity.bookie_id,
        journalDir=",".join(identity.journal_directories),
        ledgerDirs="\t".join((str(len(directories)), *directories)),
        instanceId=identity.instance_id,
    )
    return f"{COOKIE_VERSION}\n{text_format.MessageToString(cookie)}".encode()


async def check_cookie(store: MetadataStore, root: str, identity: BookieIdentity, *, in_use: bool) -> bool:
    """Whether the cluster has a cookie of this bookie, which then is its own. WrongDirectory when the bookie must not start.

    `in_use`: the directories have been used. A bookie that comes back with others would answer "no such entry" for what it
    had acknowledged (apache/bookkeeper#2612).
    """
    path = f"{root}/cookies/{identity.bookie_id}"
    found = await store.get(path)
    if found is None:
        return False
    if not in_use:
        raise WrongDirectory(
            f"{path} exists, and {', '.join(identity.ledger_directories)} was never used: is it mounted? was it emptied? "
            "A bookie that has lost its disks for good is decommissioned, and its cookie deleted, before its name is used again"
        )
    if found.value != encode_cookie(identity):
        raise WrongDirectory(
            f"{path} says {found.value.decode(errors='replace')!r}, and this bookie is {encode_cookie(identity).decode()!r}: "
            "give it the directories and the address that it had"
        )
    return True


async def store_cookie(store: MetadataStore, root: str, identity: BookieIdentity, *, has_ledgers: bool) -> None:
    """Store the cookie of a bookie without one. WrongDirectory when its directories hold ledgers: its cookie was deleted."""
    path = f"{root}/cookies/{identity.bookie_id}"
    if has_ledgers:
        raise WrongDirectory(
            f"{path} is not there, and {', '.join(identity.ledger_directories)} holds ledgers: is {root} the right cluster, "
            "and is the address the one that it had? A decommissioned bookie starts again with empty directories"
        )
    try:
        await store.put(path, encode_cookie(identity), MUST_NOT_EXIST)
    except BadVersion:
        raise WrongDirectory(f"{path}: another bookie has taken this name just now") from None


class Registration:
    """Keeps the bookie's node: writable or read-only, and made again when the session was lost. `start`, then `stop`."""

    def __init__(self, store: MetadataStore, sessions: Sessions, root: str, identity: BookieIdentity) -> None:
        self._store, self._sessions = store, sessions
        self._info = service_info(identity)
        self._writable = f"{root}/available/{identity.bookie_id}"
        self._read_only = f"{root}/available/readonly/{identity.bookie_id}"
        self._changed = asyncio.Event()
        self._is_lost = False
        self._reason = ""
        self._registered: str | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] = lambda: None

    async def start(self, read_only_reason: str) -> None:
        """Register. MetadataError when that cannot be done; a node of an earlier session of this bookie is replaced."""
        self._reason = read_only_reason
        await self._register()
        self._unwatch = self._sessions.watch_session(self._on_session)
        self._keeper = asyncio.create_task(self._keep(), name="bookie registration")

    def state(self, read_only_reason: str) -> None:
        """Tell whether the bookie takes adds."""
        if bool(read_only_reason) != bool(self._reason):
            self._changed.set()
        self._reason = read_only_reason

    async def stop(self) -> None:
        """Clients are told that the bookie goes. Stopping twice is fine."""
        self._unwatch()
        if self._keeper is None:
            return
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        self._keeper = None
        try:
            await self._delete(self._registered)
        except MetadataError as error:
            log.warning(line("registration not removed: it ends with the session", reason=error))

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.SESSION_REESTABLISHED:
            self._is_lost = True
            self._changed.set()

    async def _keep(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._register()
            except MetadataError as error:
                log.error(line("not registered, trying again", reason=error, seconds=RETRY_SECONDS))
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _register(self) -> None:
        """The new node first, then the old one goes: at no time is the bookie unknown (BookieStateManager)."""
        wanted = self._read_only if self._reason else self._writable
        if wanted == self._registered and not self._is_lost:
            return
        self._is_lost = False
        await self._delete(wanted)  # an earlier session's, which would go away under us
        await self._store.put(wanted, self._info, MUST_NOT_EXIST, ephemeral=True)
        self._registered = wanted
        await self._delete(self._writable if self._reason else self._read_only)
        log.info(line("registered", path=wanted, readOnly=self._reason or "no"))

    async def _delete(self, path: str | None) -> None:
        try:
            if path is not None:
                await self._store.delete(path)
        except NoNode:
            return
