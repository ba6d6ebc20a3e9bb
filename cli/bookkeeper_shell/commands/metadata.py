"""Commands that make or remove a cluster's metadata. All of them ask, or want to be told whose it is."""

from bookkeeper.ledger_metadata.layouts import LAYOUTS
from bookkeeper.ledger_metadata.paths import ROOT
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.repair.registered import registered_bookies
from cli.bookkeeper_cluster.cluster import Cluster
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage
from metadata.store import MetadataStore, NoNode, NotEmpty
from ports.rng import RealRng

KEPT_BY_FORMAT = ("available", "cookies")
"""Registrations and cookies: `bookieformat -d` deletes a cookie with its bookie's data."""
DELETE_ATTEMPTS_MAX = 10
"""Rounds over a node to which other clients add while it is removed."""


async def init_new_cluster(shell: Shell, given: Given) -> int:
    async with shell.metadata() as store:
        if await store.exists(ROOT):
            raise CommandFailed(f"Ledger root path: {ROOT} already exists: `nukeexistingcluster` removes it")
        await LedgerRegistry(store, RealRng(), LAYOUTS).initialise()
        shell.say(f"Successfully initiated cluster. {shell.service_uri} instanceId: {await Cluster(store).instance_id()}")
    return 0


async def nuke_existing_cluster(shell: Shell, given: Given) -> int:
    if given.has("f") == given.has("i"):
        raise WrongUsage("Either force option or instanceid should be specified (but not both)", 1)
    if not given.has("p"):
        raise WrongUsage(f"-p {ROOT} is needed: the path that goes", 1)
    if given.text("p").rstrip("/") != ROOT:
        raise CommandFailed(f"Provided ledgerRootPath : {given.text('p')} is not matching with config's: {ROOT}")
    async with shell.metadata() as store:
        if not await store.exists(ROOT):
            shell.say(f"There is no existing cluster with ledgersRootPath: {ROOT}, so exiting nuke operation")
            return 0
        if given.has("i"):
            instance_id = await Cluster(store).instance_id()
            if given.text("i") != instance_id:
                raise CommandFailed(f"Provided InstanceId : {given.text('i')} is not matching with {instance_id}")
        await _check_none_runs(store)
        await remove_tree(store, ROOT)
    shell.say(f"Successfully nuked existing cluster, ledger root path: {ROOT}")
    return 0


async def _check_none_runs(store: MetadataStore) -> None:
    running = (await registered_bookies(store)).all
    if running:
        raise CommandFailed(
            f"Bookies are still up and connected to this cluster, stop them first: {', '.join(sorted(running))}"
        )


async def meta_format(shell: Shell, given: Given) -> int:
    """All ledgers go, and with them what bookies have of them; the cluster gets a new instance id. Cookies stay: each bookie
    of the old instance is refused from then on, until it was formatted too."""
    async with shell.metadata() as store:
        if await store.exists(ROOT):
            await _check_none_runs(store)
            question = "Ledger root already exists. Are you sure to format bookkeeper metadata? This may cause data loss."
            if not (given.has("f") if given.has("n") else shell.confirm(question)):
                raise CommandFailed(f"{ROOT} exists and stays as it is" + (": -n formats it with -f only" * given.has("n")))
            for name in await store.children(ROOT):
                if name not in KEPT_BY_FORMAT:
                    await remove_tree(store, f"{ROOT}/{name}")
        await LedgerRegistry(store, RealRng(), LAYOUTS).initialise()
        shell.say(f"Formatted, instanceId: {await Cluster(store).instance_id()}")
    return 0


async def remove_tree(store: MetadataStore, path: str) -> None:
    """Removes a node and all below it. MetadataError; NotEmpty when other clients go on adding to it."""
    for attempt in range(1, DELETE_ATTEMPTS_MAX + 1):
        for name in await store.children(path):
            await remove_tree(store, f"{path}/{name}")
        try:
            await store.delete(path)
        except NoNode:
            return
        except NotEmpty:
            if attempt == DELETE_ATTEMPTS_MAX:
                raise
            continue
        return
