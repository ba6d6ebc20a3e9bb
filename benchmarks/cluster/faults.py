"""A cluster under seeded schedules of faults: `python -m benchmarks.cluster.faults [--schedules N] [--from SEED]`.

Three ZooKeepers, four bookies (E3 Qw3 Qa2), three brokers and an autorecovery, each a process with an address of its own, and
publishers and consumers that write down what they were told. One line for each schedule; the logs of the cluster in which one
failed are kept. `--schedule TEXT` replays what such a line shows. Needs root (namespaces, mounts), Java and Maven. With
`--reconcile` the pipeline's reconcile is a second judge (`reconciled_faults`), which needs PySpark.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.cluster.faults.cluster import FaultCluster, fault_cluster
from tests.clients.cluster.faults.copies import Copies
from tests.clients.cluster.faults.running import Verdict, survive
from tests.clients.cluster.faults.schedule import Schedule, generated, parsed

MS_MIN, MS_MAX = 30_000, 60_000
MS_A_FAULT = 3500
"""On average, so that some overlap."""
_RETAINED = ("defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1")
"""Settings that retain acknowledged messages, so that they are there at the end, too."""


def schedule_of(seed: int) -> Schedule:
    """30 to 60 s, 8 to 17 faults."""
    lasts_ms = MS_MIN + seed * 7919 % (MS_MAX - MS_MIN)
    return generated(seed, lasts_ms, lasts_ms // MS_A_FAULT)


def told(name: str, schedule: Schedule, verdict: Verdict) -> str:
    result = "FAILED" if verdict.wrong else "survived"
    figures = (
        f"{verdict.acknowledged} of {verdict.sent} acknowledged, {len(verdict.troubles)} errors told to clients, "
        f"faults {verdict.fault_seconds:.0f} s, healed after {verdict.healing_seconds:.0f} s"
    )
    return f"{name} {result}: {figures}: {schedule}"


def write_down(directory: Path, name: str, schedule: Schedule, verdict: Verdict) -> None:
    """Beside the logs of the members."""
    lines = [str(schedule), "", *verdict.wrong, "", *verdict.story, "", *verdict.troubles]
    (directory / f"{name}.txt").write_text("\n".join(lines) + "\n")


def run_some(
    cluster: FaultCluster, directory: Path, todo: list[tuple[str, Schedule]], until: float, is_reconciled: bool
) -> bool:
    """Takes them from `todo`; whether all that were run were survived. Stops at the first that was not."""
    copies = Copies(cluster.servers)
    while todo and time.monotonic() < until:
        name, schedule = todo.pop(0)
        verdict = survive(cluster, copies, schedule)
        if is_reconciled:
            _reconcile(cluster, directory / f"{name} reconciled", verdict)
        print(told(name, schedule, verdict), flush=True)
        write_down(directory, name, schedule, verdict)
        if verdict.wrong:
            print(*(f"  {line}" for line in verdict.wrong), f"  logs: {directory}", sep="\n", flush=True)
            return False
    return True


def _reconcile(cluster: FaultCluster, directory: Path, verdict: Verdict) -> None:
    """Adds to what is wrong, and says what it saw."""
    from benchmarks.cluster.reconciled_faults import reconciled

    directory.mkdir()
    address = cluster.brokers[0].address
    urls = ["--service-url", f"pulsar://{address}:6650", "--admin-url", f"http://{address}:8080"]
    wrong, story = reconciled(urls, verdict.records, directory)
    verdict.wrong += wrong
    print(f"  {story}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--from", type=int, default=1, dest="first", metavar="SEED")
    parser.add_argument("--schedule", metavar="TEXT", help="this one instead, as it was printed")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no schedule after so long")
    parser.add_argument("--reconcile", action="store_true", help="let the pipeline's reconcile judge, too")
    parser.add_argument("--list", action="store_true", help="print the schedules, run none")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.schedules)
    todo = [(f"seed {seed}", schedule_of(seed)) for seed in seeds]
    if options.schedule:
        todo = [("replay", parsed(options.schedule))]
    if options.list:
        print(*(f"{name}: {schedule}" for name, schedule in todo), sep="\n")
        return 0
    return run_all(todo, time.monotonic() + options.minutes * 60, options.reconcile)


def run_all(todo: list[tuple[str, Schedule]], until: float, is_reconciled: bool = False) -> int:
    """A new cluster after each that failed; the exit code."""
    wanted, failed = len(todo), 0
    while todo and time.monotonic() < until:
        directory = Path(tempfile.mkdtemp(prefix="interpulse-faults-"))
        with fault_cluster(directory, *(_RETAINED if is_reconciled else ())) as cluster:
            survived = run_some(cluster, directory, todo, until, is_reconciled)
        if survived:
            shutil.rmtree(directory)
        else:
            failed += 1
    print(f"{wanted - len(todo)} schedules run, {failed} failed, {len(todo)} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
