"""Streams into topics, killed with -9 many times, by hand: python -m benchmarks.pipeline_kills --kills 50

One standalone; both guarantees at the same time; at the end nothing may be lost and nothing twice. Prints a line for each kill.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.clients.server_process import ServerProcess
from tests.pipeline.killed_streams import KilledStreams


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=400, help="of a micro-batch")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch, ServerProcess(Path(scratch, "server"), _SETTINGS) as server:
        files = 3 * arguments.kills + 2
        streams = KilledStreams(server.start(), "persistent://public/default/k", Path(scratch, "s"), files, arguments.rows)
        for _ in range(arguments.kills):
            streams.run_and_kill(chance)
            print(f"kill {streams.kills}: {streams.committed()} of {files} files committed", flush=True)
        streams.finish()
        streams.check()
    print(f"{arguments.kills} kills: {files * arguments.rows} rows under each guarantee, none lost, none twice")
    return 0


_SETTINGS = ("transactionCoordinatorEnabled=true",)

if __name__ == "__main__":
    sys.exit(main())
