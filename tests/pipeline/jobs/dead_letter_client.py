"""A consumer of Apache's client that refuses every message, in a process of its own, until the process is killed.

Apache's client (4.2.0) now and then ends its process when it makes the producer of dead letters.
"""

import subprocess
import sys

import pulsar

from tests.clients.python_client import next_of, quiet_client, until
from tests.clients.server_process import Ready
from tests.pipeline.written_topics import made, stats
from tests.started_process import ROOT

_ATTEMPTS_MAX = 20
_SECONDS_MAX = 240.0
_MOMENT_SECONDS = 0.05


def run(url: str, topic: str, count: int) -> None:
    client = quiet_client(url)
    consumer = client.subscribe(
        topic,
        "work",
        pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(1, initial_subscription_name="redrive"),
    )
    producer = client.create_producer(topic)
    for number in range(count):
        error = f"timeout after {number} ms" if number % 3 else f"no customer {number}"
        producer.send(f"m{number}".encode(), partition_key=f"k{number % 4}", properties={"error": error})
    while True:
        message = next_of(consumer, 200)
        if message is not None:
            consumer.negative_acknowledge(message)


def dead_letters(server: Ready, name: str, count: int) -> str:
    """A topic of which all messages are dead letters of `work`; where the client ended on the way, another one."""
    for attempt in range(_ATTEMPTS_MAX):
        topic = made(server, f"{name}-{attempt}", deduplicates=True)
        path = made(server, f"{topic}-work-DLQ").replace("://", "/")
        command = [sys.executable, "-m", "tests.pipeline.jobs.dead_letter_client", server.broker_url, topic, f"{count}"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            try:
                until(lambda: _has_ended(child) or _letters(server, path) >= count, _SECONDS_MAX)  # noqa: B023 - asked here
            finally:
                child.kill()
        if _letters(server, path) == count:
            return topic
    raise AssertionError(f"the client ended {_ATTEMPTS_MAX} times")


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """After a moment, in which it may end."""
    try:
        child.wait(_MOMENT_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _letters(server: Ready, path: str) -> int:
    return int(stats(server, path)["msgInCounter"])


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
