"""Publishes one message at a time until its stdin ends: `python -m benchmarks.one_at_a_time pulsar://host:port TOPIC`.

A process of its own, so that what it waited is the server's doing and not that of whoever works beside it. Writes `ready`, and
at the end one line: how many publishes, and milliseconds that they took.
"""

import json
import select
import sys

from benchmarks.raw_client import RawClient, send_frame

PAYLOAD_BYTES = 100
SECONDS_AT_A_TIME = 0.2


def publish_until(url: str, topic: str) -> list[float]:
    """Seconds of each publish, in order of size."""
    client, found = RawClient(url), []
    client.producer(topic)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        found += client.publish_one_at_a_time(send_frame(PAYLOAD_BYTES, 1), SECONDS_AT_A_TIME)
    client.close()
    return sorted(found)


if __name__ == "__main__":
    seconds = publish_until(*sys.argv[1:])
    places = {
        "p50": len(seconds) // 2,
        "p99": len(seconds) * 99 // 100,
        "p99.9": len(seconds) * 999 // 1000,
        "worst": len(seconds) - 1,
    }
    print(json.dumps({"count": len(seconds)} | {name: round(1000 * seconds[place], 2) for name, place in places.items()}))
