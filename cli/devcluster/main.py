"""`interpulse devcluster`: the terminal, signals, the ready file; and the one-shot commands to a cluster that runs.

Exit codes: 0 after a stop that was asked for, 1 when it could not start or the command was refused.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from cli.data_place import default_data
from cli.devcluster.cluster import Devcluster
from cli.devcluster.control import SOCKET, ask, is_served, serve_control
from cli.devcluster.lines import readable
from cli.devcluster.plan import ClusterPlan, DevclusterFailed, added_bookies, cluster_plan
from cli.serving.process import STOPS, stop_on_signal
from cli.serving.ready_file import write_whole

OWN = "devcluster"
_COLOURS = (36, 32, 35, 34, 33, 96, 92, 95, 94)


class Screen:
    """The terminal: a line for each line of a member, behind its name. `gone` is set when its reader is gone."""

    def __init__(self, plan: ClusterPlan) -> None:
        names = [OWN, *(member.name for stage in plan.stages for member in stage)]
        is_terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = max(map(len, names))
        self._prefixes = {
            name: f"\x1b[{_COLOURS[index % len(_COLOURS)]}m{name:{width}} |\x1b[0m" if is_terminal else f"{name:{width}} |"
            for index, name in enumerate(names)
        }
        self._width = width
        self._is_coloured, self._is_gone = is_terminal, False
        self.gone = asyncio.Event()

    def tell(self, name: str, text: str) -> None:
        if self._is_gone:
            return
        try:
            prefix = self._prefixes.setdefault(name, f"{name:{self._width}} |")  # of one that came later
            print(prefix, readable(text, coloured=self._is_coloured), flush=True)
        except OSError:
            self._is_gone = True
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # what Python flushes at its end must not fail again
            self.gone.set()


def run_devcluster(options: argparse.Namespace) -> int:
    """Runs a cluster until SIGINT or SIGTERM; or asks the running cluster one question."""
    data = Path(options.data).resolve() if options.data else default_data("devcluster")
    json_ready = Path(options.json_ready).resolve() if options.json_ready else None
    try:
        for verb in ("kill", "stop", "restart", "add_bookie", "status"):
            if given := getattr(options, verb):
                print(ask(data, verb.replace("_", "-"), given if isinstance(given, str) else ""))
                return 0
        sets = (options.broker_set, options.bookie_set)
        bookies = max(options.bookies, added_bookies(data))
        plan = cluster_plan(
            data, options.brokers, options.bookies, options.network, *sets, has_proxy=options.proxy, bookies_now=bookies
        )
        _prepare(data, bookies)
        is_new = not any(data.glob("zookeeper/classpath-*"))
        return asyncio.run(_serve(plan, data, json_ready, is_new=is_new))
    except (DevclusterFailed, OSError) as error:
        print(f"interpulse devcluster: {error}", file=sys.stderr)
        return 1


def _prepare(data: Path, bookies: int) -> None:
    """DevclusterFailed when the directory is in use, or was one of more bookies: what those hold would be missing."""
    data.mkdir(parents=True, exist_ok=True)
    if is_served(data):
        raise DevclusterFailed(f"a devcluster runs on {data}: stop it (Ctrl-C in its terminal), or --data DIR for another one")
    had = [int(path.name.removeprefix("bookie-")) for path in data.glob("bookie-*") if path.name[7:].isdigit()]
    if max(had, default=0) > bookies:
        raise DevclusterFailed(
            f"{data} has the data of {max(had)} bookies: --bookies {max(had)}, or --data DIR for a new cluster"
        )


async def _serve(plan: ClusterPlan, data: Path, json_ready: Path | None, *, is_new: bool) -> int:
    os.chdir(data)
    stop, screen = stop_on_signal(), Screen(plan)
    cluster = Devcluster(plan, screen.tell)
    if is_new:
        screen.tell(OWN, "starting; Maven looks for ZooKeeper's jars, and fetches them if they are not there: a minute, once")
    ends = [asyncio.create_task(event.wait(), name="devcluster ends") for event in (stop, screen.gone)]
    starting = asyncio.create_task(cluster.start(), name="devcluster start")
    control = None
    try:
        await asyncio.wait((starting, *ends), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            control = await serve_control(cluster.do)
            _tell_ready(plan, cluster, screen, data, json_ready)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (starting, *ends):
            task.cancel()
        await asyncio.gather(starting, *ends, return_exceptions=True)
        _kill_on_signal(cluster)
        if control is not None:
            control.close()
            (data / SOCKET).unlink(missing_ok=True)
        screen.tell(OWN, "stopping all; once more kills them")
        await cluster.stop()
        screen.tell(OWN, "all stopped")
    return 0


def _kill_on_signal(cluster: Devcluster) -> None:
    """Makes a second signal, during the stop, kill the members at once."""
    loop = asyncio.get_running_loop()
    for number in STOPS:
        loop.add_signal_handler(number, cluster.kill_now)


def _tell_ready(plan: ClusterPlan, cluster: Devcluster, screen: Screen, data: Path, json_ready: Path | None) -> None:
    at = "" if data == default_data("devcluster") else f" --data {data}"
    told = [
        *cluster.status(),
        f"ready: {plan.service_url}",
        f"elsewhere: interpulse devcluster{at} --kill broker-1 (or --restart, --stop, --status, --add-bookie)",
        "here: Ctrl-C stops all",
    ]
    for text in told:
        screen.tell(OWN, text)
    if json_ready is not None:
        ready = {
            "serviceUrl": plan.service_url,
            "webServiceUrl": plan.web_service_url,
            "metadataStoreUrl": plan.metadata_store_url,
            "pid": os.getpid(),
            "members": {name: {"pid": member.pid, "urls": member.plan.urls} for name, member in cluster.members.items()},
        }
        write_whole(json_ready, json.dumps(ready))
