"""Disks that fail, many times: `python -m benchmarks.bookies.disk_proofs [--cuts N] [--flips N] [--seed S]`. Needs root.

Power cuts of a bookie process on a disk that forgets what was not flushed, ten after one another on the same disk; then
damage to the files of a bookie, kind by kind, and to entry logs that a scrub heals from replicas. Prints what became of each;
ends with an error at the first acknowledged entry that is missing, other, or denied.
"""

import argparse
import asyncio
import contextlib
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.bookie.disk_proofs.bit_flips import heal, on_files
from tests.bookie.disk_proofs.power_cuts import Round, power_cuts, run_rounds
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

CUTS_OF_A_DISK = 10
KINDS = ("*.journal", "*.log", "*.index", "*.ledgers", "checkpoint", "VERSION")


def cut_power(scratch: Path, count: int, seed: int, pairs: int) -> None:
    with ZooKeeperProcess(scratch / "zookeeper") as zookeeper:
        uri = f"zk+hierarchical://{zookeeper.start().servers}/ledgers"
        rounds, acknowledged, failed_starts = list[Round](), 0, 0
        while len(rounds) < count:
            with power_cuts(scratch / str(len(rounds)), uri, seed + len(rounds), pairs) as cuts:
                rounds += run_rounds(cuts, min(CUTS_OF_A_DISK, count - len(rounds)))
            acknowledged += rounds[-1].acknowledged
            failed_starts += cuts.failed_starts
    written = [each.cut.sectors for each in rounds]
    lost = [each.cut.lost for each in rounds]
    print(
        f"{count} power cuts: {acknowledged} entries acknowledged, all found after each; "
        f"{sum(map(bool, written))} cuts between a write and its flush, {sum(map(bool, lost))} of these lost sectors, "
        f"{sum(lost)} of {sum(written)}; {failed_starts} further cuts ended a start"
    )


def flip_bits(scratch: Path, count: int, seed: int) -> None:
    rounds = on_files(scratch / "flips", seed)
    for kind in KINDS:
        found = asyncio.run(rounds.run(kind, count))
        print(f"{kind} damaged {count} times: " + ", ".join(f"{name} {times}" for name, times in sorted(found.items())))
    healed = Counter(asyncio.run(heal(rounds.directory, rounds.chance)) for _ in range(count))
    print(f"*.log damaged and scrubbed {count} times: {healed[True]} times entries were written again; all right after each")


@contextlib.contextmanager
def timed() -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"  {time.monotonic() - began:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--flips", type=int, default=1000, help="of each kind of file")
    parser.add_argument("--pairs", type=int, default=1, help="of journal and ledger directories of the bookie")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="interpulse-disk-") as name:
        scratch = Path(name)
        (scratch / "flips").mkdir()
        if options.cuts:
            with timed():
                cut_power(scratch, options.cuts, options.seed, options.pairs)
        if options.flips:
            with timed():
                flip_bits(scratch, options.flips, options.seed)


if __name__ == "__main__":
    main()
