"""A stream from a topic to Parquet killed at many moments: nothing lost and nothing twice in its table.

python -m benchmarks.spark.source_kills --kills 50

Prints a line for each kill, and at the end what was found as JSON; exit code 1 when anything is lost or twice.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.clients.python_client import names, publish, quiet_client
from tests.clients.server_process import ServerProcess
from tests.pipeline.spark_process import JobFailed, SparkProcess
from tests.pipeline.streams.killed_stream import KilledStream

_TOPIC = "persistent://public/default/killed"
_SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false",)
_ATTEMPTS_MAX = 20
_TOO_SLOW = "Python worker failed to connect back"
_Result = TypeVar("_Result")


def measure(directory: Path, kills: int, messages: int, seed: int) -> dict[str, object]:
    with ServerProcess(directory / "server", _SETTINGS) as server:
        ready = server.start()
        client = quiet_client(ready.broker_url)
        try:
            publish(client, _TOPIC, messages)
        finally:
            client.close()
        options = {
            "service.url": ready.broker_url,
            "admin.url": ready.web_url,
            "topic": _TOPIC,
            "startingOffsets": "earliest",
            "maxMessagesPerTrigger": str(max(1, messages // (kills * 3))),
            "predefinedSubscription": "stream",
            "pollTimeoutMs": "300000",
        }
        began, chance = time.monotonic(), random.Random(seed)
        stream = KilledStream(directory, options)
        for _ in range(kills):
            _until_it_begins(lambda: stream.run_and_kill(chance))
            print(f"kill {stream.kills}: {stream.batches()} batches, {time.monotonic() - began:.0f} s", flush=True)
        with SparkProcess(directory / "last") as spark:
            found = _until_it_begins(lambda: stream.finish(spark))
    return {
        "kills": kills,
        "messages": messages,
        "batches": stream.batches(),
        "lost": len(set(names(0, messages)) - set(found)),
        "twice": len(found) - len(set(found)),
        "seconds": round(time.monotonic() - began, 1),
    }


def _until_it_begins(work: Callable[[], _Result]) -> _Result:
    """Spark gives the process in which a stream plans ten seconds to begin, which a machine that has too much to do exceeds."""
    for _ in range(_ATTEMPTS_MAX):
        try:
            return work()
        except JobFailed as error:
            if _TOO_SLOW not in str(error):
                raise
            print(f"once more: {_TOO_SLOW}", flush=True)
    raise AssertionError(f"{_ATTEMPTS_MAX} times in a row: {_TOO_SLOW}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--messages", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-pipeline-") as scratch:
        found = measure(Path(scratch), given.kills, given.messages, given.seed)
    print(json.dumps(found))
    return 1 if found["lost"] or found["twice"] else 0


if __name__ == "__main__":
    sys.exit(main())
