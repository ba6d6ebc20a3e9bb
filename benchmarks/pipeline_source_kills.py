"""A stream from a topic to Parquet killed at many moments: nothing lost and nothing twice in its table, told as JSON.

python -m benchmarks.pipeline_source_kills --kills 50 --messages 6000
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from tests.clients.python_client import names, publish, quiet_client
from tests.clients.server_process import ServerProcess
from tests.pipeline.killed_stream import run_killed

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
        began = time.monotonic()
        found = run_killed(directory, options, kills, random.Random(seed))
    return {
        "kills": kills,
        "messages": messages,
        "lost": len(set(names(0, messages)) - set(found)),
        "twice": len(found) - len(set(found)),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--messages", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="magnetar-pipeline-") as scratch:
        print(json.dumps(measure(Path(scratch), given.kills, given.messages, given.seed)))


if __name__ == "__main__":
    main()
