"""One broker process and two, under the same raw publishers: `python -m benchmarks.cluster.several_processes --load LOAD_TOOL`.

A ZooKeeper, two bookies (`bookie --processes 2`), and `broker --processes N` for N = 1, 2, 1, 2. Two namespaces of one bundle
each, which two processes share and one has alone; on each the load tool's `rawproduce`, which costs little. Printed for
each N and work: messages a second, CPU microseconds of a message in the brokers and in the bookies, cores that the brokers had,
messages a second with a core for each process (the cores over the cost). Where others use the machine, or brokers, bookies and
clients want more cores than there are, the rate says little and the cost much.
"""

import argparse
import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured_runs import cpu_seconds
from tests.clients.bookies.test_several_bookies import SeveralBookies
from tests.clients.cluster_admin import owner_of, put
from tests.clients.several_processes import SeveralBrokers
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

WORKS: Mapping[str, Sequence[str]] = {
    "1 KB, in long runs": ("-size", "1024", "-window", "2000"),
    "100 B, 100 topics, one at a time": ("-size", "100", "-window", "100", "-topics", "100", "-producers", "100"),
}
ONE_COPY = tuple(f"managedLedgerDefault{name}=1" for name in ("EnsembleSize", "WriteQuorum", "AckQuorum"))
SECONDS, WARM_SECONDS = 8, 3


@dataclass(frozen=True, slots=True)
class Row:
    """One work at one number of processes."""

    work: str
    processes: int
    rate: float
    broker_us: float
    bookie_us: float
    broker_cores: float

    def text(self) -> str:
        capacity = self.processes * 1e6 / self.broker_us
        return (
            f"| {self.work} | {self.processes} | {self.rate:,.0f} | {self.broker_us:.2f} | {self.bookie_us:.2f}"
            f" | {self.broker_cores:.2f} | {capacity:,.0f} |"
        )


def namespaces_of(brokers: SeveralBrokers, count: int) -> list[str]:
    """One that each process owns; for one process two."""
    found: dict[str, list[str]] = {}
    for _ in itertools.count():
        name = f"public/apart-{time.monotonic_ns()}"
        put(brokers, f"/admin/v2/namespaces/{name}", {"bundles": {"numBundles": 1}})
        found.setdefault(owner_of(f"persistent://{name}/t", brokers), []).append(name)
        if len(found) == count and sum(map(len, found.values())) >= 2:
            return [names[0] for names in found.values()] if count > 1 else next(iter(found.values()))[:2]
    raise AssertionError


def measured(tool: Path, work: str, brokers: SeveralBrokers, namespaces: Sequence[str], bookies: Sequence[int]) -> Row:
    pids = list(brokers.pids().values())
    words = [
        str(tool),
        "rawproduce",
        "-url",
        brokers.ready.broker_url,
        "-duration",
        f"{SECONDS}s",
        "-warmup",
        f"{WARM_SECONDS}s",
    ]
    topics = [f"persistent://{name}/{time.monotonic_ns()}" for name in namespaces]
    runs = [subprocess.Popen([*words, *WORKS[work], "-topic", topic], stdout=subprocess.PIPE, text=True) for topic in topics]
    before = [sum(map(cpu_seconds, of)) for of in (pids, bookies)]
    began = time.monotonic()
    told = [json.loads(run.communicate(timeout=90)[0].splitlines()[-1]) for run in runs]
    seconds = time.monotonic() - began
    used = [sum(map(cpu_seconds, of)) - start for of, start in zip((pids, bookies), before, strict=True)]
    if any("error" in row for row in told):
        raise AssertionError(told)
    sent = sum(row["sent"] for row in told)
    of_brokers, of_bookies = used
    rate = sum(row["msgs_s"] for row in told)
    return Row(work, len(pids), rate, 1e6 * of_brokers / sent, 1e6 * of_bookies / sent, of_brokers / seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print("| work | processes | messages/s | broker CPU us each | bookies' | broker cores had | messages/s with a core each |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="several-") as scratch, ExitStack() as running:
        here = Path(scratch)
        zookeeper = running.enter_context(ZooKeeperProcess(here / "zookeeper")).start()
        bookies = running.enter_context(SeveralBookies(here / "bookies", zookeeper.servers)).start()
        for turn, count in itertools.product(range(options.rounds), (1, 2)):
            directory = here / f"brokers-{turn}-{count}"
            with SeveralBrokers(directory, zookeeper.servers, count, *ONE_COPY, "loadBalancerEnabled=false") as brokers:
                namespaces = namespaces_of(brokers.start(), count)
                for work in WORKS:
                    print(measured(options.load, work, brokers, namespaces, list(bookies.pids().values())).text(), flush=True)
                brokers.stop()


if __name__ == "__main__":
    main()
