"""Commands about ledgers' metadata: show, dump, restore, list."""

from bookkeeper.ledger_metadata.codec import MalformedLedgerMetadata, decode_ledger_metadata
from bookkeeper.ledgers import LedgerError
from cli.bookkeeper_cluster.cluster import Cluster, NotThere
from cli.bookkeeper_cluster.formatting import metadata_text
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage
from metadata.store import MUST_NOT_EXIST, BadVersion


async def ledger_metadata(shell: Shell, given: Given) -> int:
    ledger_id = given.ledger_id("l")
    if given.has("dumptofile") and given.has("restorefromfile"):
        raise WrongUsage("Only one of --dumptofile and --restorefromfile can be specified", 254)
    async with shell.metadata() as store:
        cluster = Cluster(store)
        if given.has("restorefromfile"):
            await _restore(shell, cluster, ledger_id, given)
        elif given.has("dumptofile"):
            node = await cluster.ledger_node(ledger_id)
            shell.write_file(given.text("dumptofile"), node.value)
        else:
            metadata = await cluster.ledger(ledger_id)
            shell.say(f"ledgerID: {shell.ledger(ledger_id)}")
            shell.say(metadata_text(metadata))
    return 0


async def _restore(shell: Shell, cluster: Cluster, ledger_id: int, given: Given) -> None:
    """Restores metadata. Bytes that are no metadata are refused: an unreadable node would stop every listing of ledgers."""
    file = given.text("restorefromfile")
    data = shell.read_file(file)
    try:
        decode_ledger_metadata(data)
    except MalformedLedgerMetadata as error:
        raise CommandFailed(f"{file} holds no ledger metadata ({error}): -dumptofile writes such a file") from error
    path = (await cluster.registry()).path(ledger_id)
    try:
        await cluster.store.put(path, data, MUST_NOT_EXIST)
    except BadVersion:
        if not given.has("update"):
            raise CommandFailed(f"ledger {ledger_id} exists: -update replaces its metadata") from None
        node = await cluster.ledger_node(ledger_id)
        await cluster.store.put(path, data, node.stat.version)
        shell.say(f"successsfully updated ledger metadata {ledger_id}")


async def list_ledgers(shell: Shell, given: Given) -> int:
    """Also where single ones cannot be read, which is said, and is the exit code."""
    wanted, has_meta = given.text("bookieid"), given.has("m")
    unreadable = 0
    async with shell.metadata() as store:
        cluster = Cluster(store)
        async for ledger_id in cluster.ledger_ids():
            if not wanted and not has_meta:
                shell.say(f"ledgerID: {shell.ledger(ledger_id)}")
                continue
            try:
                metadata = await cluster.ledger(ledger_id)
            except NotThere:  # deleted meanwhile
                continue
            except LedgerError as error:
                shell.warn(f"Unable to read the ledger: {ledger_id} information: {error}")
                unreadable += 1
                continue
            if not wanted or any(wanted in segment.bookies for segment in metadata.segments):
                shell.say(f"ledgerID: {shell.ledger(ledger_id)}")
                if has_meta:
                    shell.say(metadata_text(metadata))
    return 1 if unreadable else 0
