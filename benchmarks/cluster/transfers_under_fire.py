"""Transfers in transactions under kills: `python -m benchmarks.cluster.transfers_under_fire [--kills N]`.

A ZooKeeper, three bookies and some brokers (E3 Qw3 Qa2), each a process; the client is Apache's for Java
(`tests/clients/cluster/transfers/Transfers.java`): each transaction takes a command, acknowledges it, and books it on two
accounts, which are topics of different brokers. Amid them a broker, a bookie or both at once are killed with SIGKILL, a
broker is stopped now and then, and all come back. At the end each command is carried out once and as a whole, the sum is 0,
readers saw nothing before its client asked for the commit, nothing that was told is not so, no command is left, no
transaction is open. Printed: for each kind of fault how long nothing was committed. The logs of a run that fails are kept.
"""

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.cluster.transfers.running import FAULTS, Fire, transfers_under_fire

STOP = "stop a broker"
KILLS = tuple(name for name in FAULTS if name != STOP)
WEIGHTS = (5, 3, 2)
KILLS_A_STOP = 6
"""After so many a broker is stopped in order."""
AMID_MAX = 100
AWAY_MAX = 300
AWAY_SECONDS_MAX = 8.0
"""Longer than a session with ZooKeeper: others take over in most, and in some it is back before they do."""


def burn(fire: Fire, kills: int, rng: random.Random) -> None:
    for number in range(1, kills + 1):
        one(fire, rng.choices(KILLS, WEIGHTS)[0], rng)
        if number % KILLS_A_STOP == 0:
            one(fire, STOP, rng)


def one(fire: Fire, name: str, rng: random.Random) -> None:
    fire.until_amid(AMID_MAX)
    fire.hit(name, rng.randint(0, AWAY_MAX), rng.uniform(0, AWAY_SECONDS_MAX))
    told = ", ".join(f"{count} {word}" for word, count in sorted(fire.program.told.items()))
    print(f"  {name}: {fire.still[name][-1]:.1f} s without a commit; {told}; load {os.getloadavg()[0]:.1f}", flush=True)


def report(fire: Fire, seconds: float) -> None:
    for name, still in fire.still.items():
        print(f"{name}, {len(still)} times: p50 {statistics.median(still):.1f} s, worst {max(still):.1f} s without a commit")
    commands, committed, aborted, failed, later = fire.program.books
    print(
        f"{commands} commands carried out once each in {seconds:.0f} s; {committed} transactions committed, {aborted} aborted, "
        f"{failed} failed, of which {later} were carried out all the same; the books balance"
    )
    for reason, count in fire.program.reasons.most_common(8):
        print(f"  failed {count} times: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8, help="transactions at a time")
    parser.add_argument("--seconds", type=int, default=10, help="the longest that a transaction may take")
    parser.add_argument("--seed", type=int, default=0, help="of what is hit when, as far as that can be repeated")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="interpulse-transfers-"))
    began, rng = time.monotonic(), random.Random(options.seed)
    try:
        with transfers_under_fire(
            scratch, brokers=options.brokers, threads=options.threads, seconds=options.seconds, seed=options.seed
        ) as fire:
            burn(fire, options.kills, rng)
            fire.check()
            report(fire, time.monotonic() - began)
    except AssertionError as failure:
        print(f"FAILED, kept in {scratch}: {failure}")
        sys.exit(1)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
