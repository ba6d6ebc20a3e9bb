"""Commands about entries: read a ledger, try whether writing works, delete a ledger, move its copies' name."""

import asyncio
import dataclasses
from collections.abc import Callable

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.repair.registered import registered_bookies
from cli.bookkeeper_cluster.cluster import Cluster, ClusterFailed, NotThere, checked_bookie_id
from cli.bookkeeper_cluster.formatting import entry_text, hex_dump
from cli.bookkeeper_cluster.ledger_access import open_ledgers
from cli.bookkeeper_cluster.trial import ON_ONE_BOOKIE, write_trial
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage
from metadata.store import MetadataStore


async def read_ledger(shell: Shell, given: Given) -> int:
    ledger_id, first = given.ledger_id("l"), given.number("fe", 0)
    wanted = given.number("le", -1, smallest=-1)
    last = None if wanted < 0 else wanted
    if last is not None and last < first:
        raise WrongUsage(f"-le {last} is before -fe {first}")
    if given.has("b") and given.has("r"):
        raise WrongUsage("-r recovers the ledger at all its bookies: leave -b out")
    async with shell.metadata() as store, open_ledgers(store, shell.client_tls()) as access:
        if given.has("b"):
            bookie_id = checked_bookie_id(given.text("b"))
            async for entry in access.read_at(bookie_id, ledger_id, first, last):
                shell.say(f"--------- Lid={shell.ledger(ledger_id)}, Eid={entry.entry_id} ---------")
                if given.has("m"):
                    shell.say(f"Data: \n{hex_dump(entry.payload)}")
            return 0
        async for entry in access.read(ledger_id, first, last, recovers=given.has("r")):
            size = len(entry.payload)
            shell.say(f"--------- Lid={shell.ledger(ledger_id)}, Eid={entry.entry_id}, EntrySize={size} ---------")
            if given.has("m"):
                shell.say(entry_text(entry.payload, shell.entry_format))
    return 0


async def delete_ledger(shell: Shell, given: Given) -> int:
    ledger_id = given.ledger_id("l")
    async with shell.metadata() as store:
        cluster = Cluster(store)
        await cluster.ledger_node(ledger_id)
        if not given.has("f") and not shell.confirm(f"Are your sure to delete Ledger : {shell.ledger(ledger_id)}?"):
            return 0
        await (await cluster.registry()).delete(ledger_id)
    shell.say(f"Deleted ledger: {shell.ledger(ledger_id)}")
    return 0


async def simple_test(shell: Shell, given: Given) -> int:
    ensemble, write, ack = (given.number(option, size, 1) for option, size in (("e", 3), ("w", 2), ("a", 2)))
    count = given.number("n", 1000, 1)
    if not ensemble >= write >= ack:
        raise WrongUsage(f"-e {ensemble} -w {write} -a {ack}: the ensemble is the largest, the ack quorum the smallest")
    async with shell.metadata() as store, open_ledgers(store, shell.client_tls()) as access:
        read = await write_trial(access, count, (ensemble, write, ack), shell.say)
    shell.say(f"{read} entries read, and the ledger deleted")
    return 0


async def bookie_sanity(shell: Shell, given: Given) -> int:
    """Checks the bookie of this configuration."""
    count, seconds = given.number("e", 10, 1), given.number("t", 1, 1)
    bookie_id = local_bookie_id(shell)
    async with shell.metadata() as store:
        if bookie_id not in (await registered_bookies(store)).writable:
            raise NotThere(f"bookie {bookie_id} of {shell.configured_in} does not run here, or is read-only")
        async with open_ledgers(store, shell.client_tls()) as access:
            try:
                async with asyncio.timeout(seconds * 2):  # written, and read
                    read = await write_trial(access, count, ON_ONE_BOOKIE, shell.say, bookie_id)
            except TimeoutError:
                raise CommandFailed(f"bookie {bookie_id} did not do it in {seconds} s each: -t allows more") from None
    shell.say(f"Read {read} entries from bookie {bookie_id}")
    shell.say("Bookie sanity test succeeded")
    return 0


def local_bookie_id(shell: Shell) -> str:
    """Id of the bookie of this configuration. CommandFailed."""
    from bookie.server.settings import BookieServerSettings
    from cli.bookie.server import BookieFailed, advertised_host

    settings = shell.settings(BookieServerSettings)
    if settings.bookie_id:
        return settings.bookie_id
    if not settings.bookie_port:
        raise CommandFailed("bookiePort=0: which port the bookie has taken is not known; bookieId would name it")
    try:
        return f"{advertised_host(settings)}:{settings.bookie_port}"
    except BookieFailed as error:
        raise CommandFailed(str(error)) from error


async def update_bookie_in_ledger(shell: Shell, given: Given) -> int:
    if not given.has("sb") or not given.has("db"):
        raise WrongUsage("-sb <bookieId> and -db <bookieId> are needed")
    source, destination = (checked_bookie_id(given.text(option)) for option in ("sb", "db"))
    if source == destination:
        raise WrongUsage(f"-sb and -db are both {source}")
    rate, limit = given.number("s", 5, 1), given.number("l", 0, 1)
    async with shell.metadata() as store:
        if source in (await registered_bookies(store)).all:
            raise CommandFailed(f"Source bookie {source} can't be active: stop it first")
        tell = shell.say if given.text("v").lower() == "true" else _silent
        updated = await _rename(store, (source, destination), rate, limit, tell)
    shell.say(f"Number of ledgers updated={updated}")
    return 0


def _silent(text: str) -> None:
    """Drops a text that is told with -v true only."""


async def _rename(store: MetadataStore, names: tuple[str, str], rate: int, limit: int, tell: Callable[[str], None]) -> int:
    """Renames a bookie in at most `rate` ledgers a second, and `limit` in all (0: all). Returns their count."""
    cluster, loop = Cluster(store), asyncio.get_running_loop()
    registry = await cluster.registry()
    began, updated = loop.time(), 0
    async for ledger_id in cluster.ledger_ids():
        if limit and updated >= limit:
            break
        ledger = await registry.read(ledger_id)
        if any(names[0] in segment.bookies for segment in ledger.metadata.segments):
            await registry.update(ledger, lambda metadata: renamed(metadata, *names))
            updated += 1
            tell(f"ledger {ledger_id} updated")
            await asyncio.sleep(max(0.0, began + updated / rate - loop.time()))
    return updated


def renamed(metadata: LedgerMetadata, source: str, destination: str) -> LedgerMetadata | None:
    """Metadata with `destination` in place of `source`; None: it has no `source`. ClusterFailed where both have copies."""
    segments = []
    for segment in metadata.segments:
        if source in segment.bookies and destination in segment.bookies:
            raise ClusterFailed(f"{source} and {destination} both have copies of the entries from {segment.first_entry_id}")
        names = tuple(destination if name == source else name for name in segment.bookies)
        segments.append(dataclasses.replace(segment, bookies=names))
    return None if tuple(segments) == metadata.segments else dataclasses.replace(metadata, segments=tuple(segments))
