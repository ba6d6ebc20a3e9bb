"""Commands about bookies: which there are, where they are, how much room they have."""

import asyncio
import json
from collections.abc import Iterable

from cli.bookkeeper_cluster.cluster import BookieAddress, Cluster, NotThere, checked_bookie_id
from cli.bookkeeper_shell.context import Shell
from cli.bookkeeper_shell.options import Given, WrongUsage
from wire.generated.ledger_metadata_pb2 import BookieServiceInfoFormat

_KINDS = {"rw": "ReadWrite Bookies :", "ro": "Readonly Bookies :", "a": "All Bookies :"}


async def list_bookies(shell: Shell, given: Given) -> int:
    kinds = [kind for kind in _KINDS if given.has(kind)]
    if len(kinds) != 1:
        raise WrongUsage("One and only one of -readwrite, -readonly and -all must be specified", 1)
    async with shell.metadata() as store:
        cluster = Cluster(store)
        listing = {"rw": cluster.writable, "ro": cluster.read_only, "a": cluster.known}[kinds[0]]
        found = await listing()
        if not found:
            shell.warn("No bookie exists!")
            return 0
        shell.say(_KINDS[kinds[0]])
        for address in await _addresses(cluster, found):
            shell.say(str(address))
    return 0


async def _addresses(cluster: Cluster, bookie_ids: Iterable[str]) -> list[BookieAddress]:
    return list(await asyncio.gather(*(cluster.address(bookie_id) for bookie_id in bookie_ids)))


async def what_is_instance_id(shell: Shell, given: Given) -> int:
    async with shell.metadata() as store:
        instance_id = await Cluster(store).instance_id()
        shell.say(f"Metadata Service Uri: {shell.service_uri} InstanceId: {instance_id}")
    return 0


async def endpoint_info(shell: Shell, given: Given) -> int:
    if not given.has("b"):
        raise WrongUsage("-b <bookieId> is needed")
    bookie_id = checked_bookie_id(given.text("b"))
    async with shell.metadata() as store:
        cluster = Cluster(store)
        info = await cluster.service_info(bookie_id)
        if info is None:
            known = await cluster.known()
            if bookie_id not in known:
                raise NotThere(f"Bookie {bookie_id} does not exist, only {known}")
            raise NotThere(f"Bookie {bookie_id} did not publish any endpoint info. Maybe it is down")
    _say_endpoints(shell, bookie_id, BookieServiceInfoFormat.FromString(info))
    return 0


def _say_endpoints(shell: Shell, bookie_id: str, info: BookieServiceInfoFormat) -> None:
    shell.say(f"BookiedId: {bookie_id}")  # as Apache spells it: scripts look for it
    if info.properties:
        shell.say("Properties")
    for key, value in sorted(info.properties.items()):
        shell.say(f"{key} : {value}")
    for endpoint in info.endpoints:
        shell.say(f"Endpoint: {endpoint.id}")
        shell.say(f"Protocol: {endpoint.protocol}")
        shell.say(f"Address: {endpoint.host} : {endpoint.port}")
        shell.say(f"Auth: [{', '.join(endpoint.auth)}]")
        shell.say(f"Extensions: [{', '.join(endpoint.extensions)}]")


async def cluster_info(shell: Shell, given: Given) -> int:
    from cli.bookkeeper_cluster.summaries import cluster_summary

    async with shell.metadata() as store:
        shell.say("--------- Cluster Info ---------")
        shell.say(json.dumps(await cluster_summary(store), indent=2))
    return 0


async def bookie_info(shell: Shell, given: Given) -> int:
    from cli.bookkeeper_cluster.formatting import readable
    from cli.bookkeeper_cluster.summaries import disk_spaces

    async with shell.metadata() as store:
        cluster = Cluster(store)
        spaces, failures = await disk_spaces(store, shell.client_tls())
        for bookie_id, reason in failures.items():
            shell.warn(f"{bookie_id}: {reason}")
        if not spaces:
            raise NotThere("Failed to retrieve bookie information from any of the bookies")
        shell.say("Free disk space info:")
        for address in await _addresses(cluster, spaces):
            space = spaces[address.bookie_id]
            free, total = space.free_bytes, space.total_bytes
            shell.say(f"{address}: \tFree: {free}{readable(free)}\tTotal: {total}{readable(total)}")
    free, total = (sum(space.free_bytes for space in spaces.values()), sum(space.total_bytes for space in spaces.values()))
    shell.say(f"Total free disk space in the cluster:\t{free}{readable(free)}")
    shell.say(f"Total disk capacity in the cluster:\t{total}{readable(total)}")
    return 1 if failures else 0
