"""Single messages, published one after the other until stdin ends.

`python -m benchmarks.cluster.one_at_a_time pulsar://host:port TOPIC [RATE]`. Runs in a process of its own, so that work beside
it does not lengthen its waits. Writes `ready`, and at the end one line: the count of publishes and their milliseconds. With
RATE at most so many begin in a second.
"""

import json
import select
import sys
import time

from benchmarks.raw_client import RawClient, send_frame

PAYLOAD_BYTES = 100
SECONDS_AT_A_TIME = 0.2


def publish_until(url: str, topic: str, rate: str = "0") -> list[float]:
    """Seconds of each publish, in order of size."""
    client = RawClient(url)
    found: list[float] = []
    client.producer(topic)
    one = send_frame(PAYLOAD_BYTES, 1)
    print("ready", flush=True)
    pause = 1 / float(rate) if float(rate) else 0.0
    at_a_time = 1e-4 if pause else SECONDS_AT_A_TIME  # one, or so many as fit
    due = time.perf_counter()
    while not found or not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
        found += client.publish_one_at_a_time(one, at_a_time)
        due = max(due + pause, time.perf_counter())
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
