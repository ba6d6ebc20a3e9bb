"""Transactions of ours, then of Apache's cluster of the same shape: `python -m benchmarks.cluster.transactions_beside_apache`.

Three bookies and a broker each, E3 Qw3 Qa2, one ZooKeeper, everything on this machine, one cluster after the other; the client
is Apache's for Java (`TransactionRate.java`), with some threads that each do one transaction after the other: publish so many
messages of 1 KB and commit, then acknowledge as many and commit. Printed: transactions and messages a second, CPU of all
processes of the cluster and of the broker alone, how long a transaction takes. About a minute for each cluster.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.cluster.members import Members, apaches_cluster, our_cluster
from tests.clients.apache_broker_process import apache_classpath

CLUSTERS: dict[str, Callable[..., AbstractContextManager[Members]]] = {"ours": our_cluster, "apache": apaches_cluster}
SETTINGS = {"transactionCoordinatorEnabled": "true"}
TOPIC = "persistent://public/default/transactions"
SOURCE = Path(__file__).parent / "TransactionRate.java"
RUN_SECONDS_MAX = 180.0
HEADINGS = (
    "cluster",
    "each transaction",
    "txn/s",
    "msgs/s",
    "CPU ms a txn",
    "broker alone",
    "cores",
    "p50 ms",
    "p99 ms",
    "load",
)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and all its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_cpu(members: Members) -> dict[str, float]:
    return {name: cpu_seconds(pid) for name, pid in members.processes.items()}


def work(members: Members, classpath: str, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """A row for each kind of transaction."""
    words = [members.broker_url, TOPIC, options.seconds, options.warm, options.threads, options.messages]
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", classpath, str(SOURCE), *map(str, words)]
    before: dict[str, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said = line.split()
            if said[:1] == ["begin"]:
                before = all_cpu(members)
            elif said[:1] == ["end"]:
                yield row(members, said, before, options.messages)
        if process.wait(RUN_SECONDS_MAX):
            raise AssertionError(f"the client at {members.name} ended with {process.returncode}")


def row(members: Members, said: list[str], before: dict[str, float], messages: int) -> tuple[str, ...]:
    _, kind, transactions, count, elapsed, p50, p99 = said
    used = {name: now - before[name] for name, now in all_cpu(members).items()}
    number, seconds = int(transactions) or 1, float(elapsed)
    return (
        members.name,
        f"{kind} {messages}",
        f"{int(transactions) / seconds:,.0f}",
        f"{int(count) / seconds:,.0f}",
        f"{1000 * sum(used.values()) / number:.2f}",
        f"{1000 * used['broker'] / number:.2f}",
        f"{sum(used.values()) / seconds:.2f}",
        p50,
        p99,
        f"{os.getloadavg()[0]:.1f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", default="ours,apache", help="in this order; may be named again")
    parser.add_argument("--seconds", type=float, default=10, help="of each kind")
    parser.add_argument("--warm", type=float, default=10, help="seconds of publishing beforehand")
    parser.add_argument("--threads", type=int, default=16, help="transactions at a time")
    parser.add_argument("--messages", type=int, default=10, help="of each transaction")
    options = parser.parse_args()
    print("|", " | ".join(HEADINGS), "|")
    print("| --- " * len(HEADINGS) + "|")
    for name in options.clusters.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="interpulse-transactions-") as scratch,
            CLUSTERS[name](Path(scratch), **SETTINGS) as members,
        ):
            for cells in work(members, apache_classpath(Path(scratch)), options):
                print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
