"""Streams into topics, killed with -9 many times, by hand: python -m benchmarks.spark.kills --kills 50

One standalone; both guarantees at the same time; at the end nothing may be lost and nothing twice. Prints a line for each kill.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.server_process import ServerProcess
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.streams.killed_streams import KilledStreams


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=400, help="of a micro-batch")
    arguments = parser.parse_args()
    chance, began = random.Random(arguments.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, ServerProcess(Path(scratch, "server"), _SETTINGS) as server:
        files = 3 * arguments.kills + 2
        streams = KilledStreams(server.start(), "persistent://public/default/k", Path(scratch, "s"), files, arguments.rows)
        for _ in range(arguments.kills):
            streams.run_and_kill(chance)
            seconds = time.monotonic() - began
            print(f"kill {streams.kills}: {streams.committed()} of {files} files committed, {seconds:.0f} s", flush=True)
        with SparkProcess(Path(scratch, "last")) as spark:
            streams.finish(spark, files_of_a_batch=25)
        streams.check()
    print(f"{arguments.kills} kills: {files * arguments.rows} rows under each guarantee, none lost, none twice")
    return 0


_SETTINGS = ("transactionCoordinatorEnabled=true",)

if __name__ == "__main__":
    sys.exit(main())
