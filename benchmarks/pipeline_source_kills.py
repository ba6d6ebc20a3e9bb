"""A stream from a topic to Parquet killed at many moments: nothing lost and nothing twice in its table.

python -m benchmarks.pipeline_source_kills --kills 50

Prints a line for each kill, and at the end what was found as JSON; exit code 1 when anything is lost or twice.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.python_client import names, publish, quiet_client
from tests.clients.server_process import ServerProcess
from tests.pipeline.killed_stream import KilledStream
from tests.pipeline.spark_process import SparkProcess

_TOPIC = "persistent://public/default/killed"
_SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false",)


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
            stream.run_and_kill(chance)
            print(f"kill {stream.kills}: {stream.batches()} batches, {time.monotonic() - began:.0f} s", flush=True)
        with SparkProcess(directory / "last") as spark:
            found = stream.finish(spark)
    return {
        "kills": kills,
        "messages": messages,
        "batches": stream.batches(),
        "lost": len(set(names(0, messages)) - set(found)),
        "twice": len(found) - len(set(found)),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--messages", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="magnetar-pipeline-") as scratch:
        found = measure(Path(scratch), given.kills, given.messages, given.seed)
    print(json.dumps(found))
    return 1 if found["lost"] or found["twice"] else 0


if __name__ == "__main__":
    sys.exit(main())
