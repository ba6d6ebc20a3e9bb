"""Waits of a writer when a bookie is killed or stopped: `python -m benchmarks.bookies.under_fire [--kills N]`.

A ZooKeeper, five bookies and a paced writer (E3 Qw3) in one process; each kill -9 or SIGSTOP hits a bookie of the ensemble that
is written to. Prints the longest time that an append took around each, counted from when it was due; then a recovery looks for
every acknowledged entry. An append that fails, or an entry that is missing, ends it with an error.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies_under_fire import ENSEMBLE, Fire, under_fire
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

BOOKIES = 5
QUIET_SECONDS = 3.0


def milliseconds(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {statistics.median(ordered) * 1000:.1f} ms, worst {ordered[-1] * 1000:.1f} ms"


async def measure(servers: str, bookies: Sequence[BookieProcess], options: argparse.Namespace) -> None:
    async with under_fire(
        servers,
        bookies,
        ack=options.ack,
        per_second=options.rate,
        timeout_seconds=options.timeout,
        use_version2=not options.version3,
    ) as fire:
        await fire.load.run_for(QUIET_SECONDS)
        took = [each.seconds for each in fire.load.took]
        p99 = statistics.quantiles(took, n=100)[98]
        print(f"nothing killed: {milliseconds(took)}, p99 {p99 * 1000:.1f} ms of {len(took)} appends")
        await fires(fire, options)
        print(f"{await fire.check()} entries acknowledged, all found; no append failed")


async def fires(fire: Fire, options: argparse.Namespace) -> None:
    for index in range(options.kills):
        await fire.start(await fire.kill_one(index % ENSEMBLE, options.seconds))
    if fire.spikes:
        print(f"{options.kills} times kill -9, the longest append of each: {milliseconds(fire.spikes)}")
    fire.spikes.clear()
    for index in range(options.stops):
        await fire.stop_one(index % ENSEMBLE, options.timeout + options.seconds)
    if fire.spikes:
        print(f"{options.stops} times SIGSTOP, the longest append of each: {milliseconds(fire.spikes)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stops", type=int, default=5)
    parser.add_argument("--ack", type=int, default=2, choices=(2, 3), help="ack quorum")
    parser.add_argument("--rate", type=float, default=500, help="appends of 1 KB a second")
    parser.add_argument("--seconds", type=float, default=1.5, help="for which a killed bookie is away")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds until a bookie that does not answer is replaced")
    parser.add_argument("--version3", action="store_true", help="entries over version 3 of the protocol")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-fire-") as scratch, ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(Path(scratch) / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        processes = [BookieProcess(Path(scratch) / f"bookie-{number}", uri, "zkTimeout=2000") for number in range(BOOKIES)]
        bookies = [running.enter_context(process).start() for process in processes]
        asyncio.run(measure(zookeeper.servers, bookies, options))


if __name__ == "__main__":
    main()
