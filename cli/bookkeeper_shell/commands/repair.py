"""Commands that take bookies out of ledgers: `recover` copies here and now, `decommissionbookie` waits for the workers."""

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.repair.decommission import decommission
from bookkeeper.repair.recover import Recovered, recover
from bookkeeper.repair.registered import delete_cookie
from bookkeeper.repair.settings import RepairSettings
from cli.bookkeeper_cluster.cluster import Cluster, checked_bookie_id
from cli.bookkeeper_cluster.ledger_access import open_ledgers
from cli.bookkeeper_cluster.replication import progress_line
from cli.bookkeeper_shell.commands.entries import local_bookie_id
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage, whole_number
from metadata.store import MetadataStore


async def recover_bookies(shell: Shell, given: Given) -> int:
    if not given.arguments:
        raise WrongUsage("'bookieSrc' argument required")
    if given.arguments[1:]:
        shell.warn(f"The provided bookie dest {given.arguments[1]} will be ignored!")
    bookies = frozenset(checked_bookie_id(text) for text in given.arguments[0].split(","))
    ledger_id = given.ledger_id("l") if given.has("l") else None
    async with shell.metadata() as store:
        if given.has("q"):
            return await _query(shell, store, bookies, ledger_id)
        is_dry = given.has("dr")
        if not is_dry and not given.has("f"):
            shell.say(f"Bookies : {', '.join(sorted(bookies))}")
            if not shell.confirm("Are you sure to recover them"):
                raise CommandFailed("Give up!")
        async with open_ledgers(store, shell.client_tls(), _settings(shell, given)) as access:
            done = await recover(
                access.client,
                bookies,
                ledger_id=ledger_id,
                dry_run=is_dry,
                skips_open_ledgers=given.has("sk"),
                skips_unrecoverable_ledgers=given.has("sku"),
                report=progress_line(shell.say),
            )
        code = _say_recovered(shell, done, is_dry)
        if given.has("d") and not is_dry and code == 0 and ledger_id is None and not done.open_left:
            for bookie_id in sorted(bookies):
                if not await delete_cookie(store, bookie_id):
                    shell.warn(f"No cookie to remove for {bookie_id}")
    return code


def _settings(shell: Shell, given: Given) -> RepairSettings:
    """With the rate of this command. WrongUsage."""
    if not given.has("rate"):
        return shell.settings(RepairSettings)
    rate = whole_number(given.text("rate"), "-rate", smallest=-1)
    return shell.with_setting("replicationRateByBytes", str(rate)).settings(RepairSettings)


def _say_recovered(shell: Shell, done: Recovered, is_dry: bool) -> int:
    verb = "would be recovered" if is_dry else "recovered"
    for ledger_id in done.repaired:
        shell.say(f"ledger {shell.ledger(ledger_id)} {verb}")
    for ledger_id in done.open_left:
        shell.say(f"ledger {shell.ledger(ledger_id)} is open: left as it is")
    for ledger_id, reason in done.failed.items():
        shell.warn(f"ledger {shell.ledger(ledger_id)} not recovered: {reason}")
    shell.say(f"{len(done.repaired)} ledgers {verb}, {len(done.open_left)} open ones left, {len(done.failed)} failed")
    return 255 if done.failed else 0


async def _query(shell: Shell, store: MetadataStore, bookies: frozenset[str], ledger_id: int | None) -> int:
    """Prints the ledgers with copies there; the bookies asked for are marked with a star, as Apache's."""
    shell.say("NOTE: Bookies in inspection list are marked with '*'.")
    cluster = Cluster(store)
    if ledger_id is not None:
        _say_ledger(shell, ledger_id, await cluster.ledger(ledger_id), bookies)
        shell.say("Done")
        return 0
    unreadable = 0
    async for each, metadata in cluster.ledgers():
        if isinstance(metadata, LedgerMetadata):
            _say_ledger(shell, each, metadata, bookies)
        else:
            unreadable += 1
            shell.warn(str(metadata))
    shell.say("Done")
    return 255 if unreadable else 0


def _say_ledger(shell: Shell, ledger_id: int, metadata: LedgerMetadata, bookies: frozenset[str]) -> None:
    if not any(bookies & set(segment.bookies) for segment in metadata.segments):
        return
    shell.say(f"ledger {shell.ledger(ledger_id)} : {metadata.state.name}")
    for segment in metadata.segments:
        names = " ".join(f"{name}*" if name in bookies else name for name in segment.bookies)
        shell.say(f"{segment.first_entry_id}:\t{names}")


async def decommission_bookie(shell: Shell, given: Given) -> int:
    bookie_id = checked_bookie_id(given.text("bookieid")) if given.has("bookieid") else local_bookie_id(shell)
    async with shell.metadata() as store, open_ledgers(store, shell.client_tls(), shell.settings(RepairSettings)) as access:
        had_cookie = await decommission(access.client, bookie_id, progress_line(shell.say))
    shell.say(f"The ledgers stored in the given decommissioning bookie: {bookie_id} are properly replicated")
    if had_cookie:
        shell.say(f"Cookie of the decommissioned bookie: {bookie_id} is deleted successfully")
    else:
        shell.warn(f"No cookie to remove for the decommissioning bookie: {bookie_id}, it could be deleted already")
    return 0
