"""`python -m benchmarks.doctor_faults`: injects every fault, asks the doctor, prints the table and the rate.

    python -m benchmarks.doctor_faults                    # all: needs Java and Maven for ZooKeeper, and the right to mount
    python -m benchmarks.doctor_faults --group credentials --group configurations       # no server: a minute

Exit code 0 when at least 95 % of the faults are named with the right remedy and no control is alarmed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.doctor_faults import configurations, credentials, directories
from benchmarks.doctor_faults.fault import Fault, Outcome, outcomes
from benchmarks.doctor_faults.table import is_enough, markdown, one_line, summary


@contextmanager
def _directories(scratch: Path) -> Iterator[list[Fault]]:
    stopped = directories.stored(scratch / "stopped", killed=False)
    yield directories.faults(stopped, directories.stored(scratch / "killed", killed=True))


@contextmanager
def _configurations(scratch: Path) -> Iterator[list[Fault]]:
    yield configurations.faults()


@contextmanager
def _credentials(scratch: Path) -> Iterator[list[Fault]]:
    yield credentials.faults()


@contextmanager
def _servers(scratch: Path) -> Iterator[list[Fault]]:
    from benchmarks.doctor_faults import servers

    yield servers.faults()


@contextmanager
def _topics(scratch: Path) -> Iterator[list[Fault]]:
    from benchmarks.doctor_faults import topics

    with topics.served(scratch / "standalone") as faults:
        yield faults


@contextmanager
def _cluster(scratch: Path) -> Iterator[list[Fault]]:
    from benchmarks.doctor_faults import cluster

    with cluster.started(scratch / "cluster") as faults:
        yield faults


GROUPS = {
    "directories": _directories,
    "configurations": _configurations,
    "credentials": _credentials,
    "servers": _servers,
    "topics": _topics,
    "cluster": _cluster,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.doctor_faults", description="Faults, and what the doctor says.")
    parser.add_argument("--group", action="append", choices=tuple(GROUPS), help="these faults alone; may be repeated")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults with this in their name")
    parser.add_argument("--markdown", metavar="FILE", help="write the table there")
    options = parser.parse_args()
    found: list[tuple[str, Outcome]] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="doctor-") as scratch:
        for group in options.group or GROUPS:
            found += [(group, each) for each in injected(group, Path(scratch) / group, options.only, _say)]
    print(summary(found, time.monotonic() - begun))
    if options.markdown:
        Path(options.markdown).write_text(markdown(found))
    return 0 if is_enough(found) else 1


def injected(group: str, scratch: Path, only: str, tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Every fault of a group, on one set of servers."""
    scratch.mkdir(parents=True)
    with GROUPS[group](scratch) as faults:
        chosen = [fault for fault in faults if only in fault.name]
        return list(outcomes(chosen, scratch / "faults", tell))


def _say(outcome: Outcome) -> None:
    print(one_line(outcome), flush=True)


if __name__ == "__main__":
    sys.exit(main())
