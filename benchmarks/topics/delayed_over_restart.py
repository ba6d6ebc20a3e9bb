"""Delayed messages over kill -9 and a polite stop, each counted: `.venv/bin/python -m benchmarks.topics.delayed_over_restart`.

One Shared subscription, strict, unbatched, every message with a number of its own. Of `--messages` every tenth is
acknowledged by its id before it was ever delivered, `--due` come due evenly over `--seconds`, the others one to eleven hours
ahead. Under way the server is killed and later stopped; at the end a policy switches delays off, so that all that is left
comes, too. Counted with bitmaps: what came early, what came again after its acknowledgement was answered, what never came.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from array import array
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import crc32c
from pyroaring import BitMap

from benchmarks.raw_client import KIND_AT, RawClient, Unexpected, frame, is_kind, process_use
from tests.clients.server_process import Ready, ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageMetadata

NAME = "public/default/waits"
TOPIC = f"persistent://{NAME}"
NUMBER_BYTES = 8
WINDOW = 20_000
STEP = 1_000
PERMITS = 20_000
HOUR_MS = 3_600_000
SECONDS_MAX = 600.0
FIRST_REQUEST = 1 << 30
"""Acknowledgements of what came are numbered from here."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def peak_mb(pid: int) -> float:
    """The largest resident size so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


class Plan:
    """Due times of the messages, and those that are acknowledged before."""

    def __init__(self, count: int, due: int, began_ms: int, seconds: float) -> None:
        rng = random.Random(1)
        self.count = count
        self.times = array("q", (began_ms + HOUR_MS + int(rng.random() * 10 * HOUR_MS) for _ in range(count)))
        self.unseen = BitMap(range(0, count, 10))
        """Acknowledged by their ids, never delivered."""
        step = count // due
        self.due = BitMap(range(step // 2 * 2 + 1, count, step)) - self.unseen
        for number in self.due:
            self.times[number] = began_ms + int((0.25 + 0.75 * rng.random()) * seconds * 1000)


def publish(ready: Ready, plan: Plan) -> list[tuple[int, int]]:
    """The ids of those that are acknowledged unseen."""
    client = RawClient(ready.broker_url)
    client.producer(TOPIC)
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = 0, 1 << 28
    said = command.SerializeToString()
    metadata = MessageMetadata(producer_name="b", sequence_id=0, publish_time=now_ms(), deliver_at_time=plan.times[0])
    size = len(metadata.SerializeToString())
    length = 4 + len(said) + 6 + 4 + size + NUMBER_BYTES
    start = length.to_bytes(4, "big") + len(said).to_bytes(4, "big") + said + b"\x0e\x01"
    ids: list[tuple[int, int]] = []
    acknowledged = 0

    def receipts() -> None:
        nonlocal acknowledged
        for data in client.frames():
            if acknowledged in plan.unseen:
                told = BaseCommand.FromString(data[4:]).send_receipt.message_id
                ids.append((told.ledger_id, told.entry_id))
            is_kind(data, BaseCommand.SEND_RECEIPT)
            acknowledged += 1

    for first in range(0, plan.count, STEP):
        parts: list[bytes] = []
        for number in range(first, min(first + STEP, plan.count)):
            metadata.deliver_at_time = plan.times[number]
            body = size.to_bytes(4, "big") + metadata.SerializeToString() + number.to_bytes(NUMBER_BYTES, "big")
            parts += (start, crc32c.crc32c(body).to_bytes(4, "big"), body)
        while first + STEP - acknowledged > WINDOW:
            receipts()
        client.send(b"".join(parts))
    while acknowledged < plan.count:
        receipts()
    client.close()
    return ids


def ack_frame(ids: list[tuple[int, int]], request_id: int) -> bytes:
    command = BaseCommand(type=BaseCommand.ACK)
    command.ack.consumer_id, command.ack.ack_type, command.ack.request_id = 0, CommandAck.Individual, request_id
    for ledger_id, entry_id in ids:
        command.ack.message_id.add(ledger_id=ledger_id, entry_id=entry_id)
    return frame(command)


class Consumer:
    """Receives and acknowledges in a thread of its own until told to stop, over several connections."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.came = BitMap()
        self.answered = BitMap(plan.unseen)
        """Acknowledged, and the answer came."""
        self.early, self.again, self.redelivered = 0, BitMap(), 0
        self.late: list[tuple[int, bool]] = []
        """Milliseconds, and whether it came due when the server was there, not while it was down."""
        self._up_ms = 0
        self.first_at: float | None = None
        self.only_counts = False
        """True when the consumer acknowledges no more."""
        self._open: dict[int, list[int]] = {}
        self._requests = FIRST_REQUEST
        self._stop = False
        self._thread: threading.Thread | None = None

    def attach(self, ready: Ready) -> None:
        self._client = RawClient(ready.broker_url)
        self._client.subscribe(TOPIC, "s", CommandSubscribe.Shared)
        self._client.flow(PERMITS)
        self._stop, self.first_at, self.late, self._up_ms = False, None, [], now_ms()
        self._open.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def detach(self) -> None:
        """Also when the server is gone."""
        self._stop = True
        assert self._thread is not None
        self._thread.join()
        self._client.close()

    def acknowledge_unseen(self, ids: list[tuple[int, int]]) -> None:
        """Returns when all of it was answered."""
        for first in range(0, len(ids), STEP):
            self._open[first] = []
            self._client.send(ack_frame(ids[first : first + STEP], first))
        while any(request_id < FIRST_REQUEST for request_id in list(self._open)):
            time.sleep(0.05)

    def _run(self) -> None:
        while not self._stop:
            try:
                self._take(list(self._client.frames()))
            except TimeoutError:
                continue
            except (OSError, Unexpected) as end:  # the server was killed: what is open stays so
                print(f"the connection ended: {end}", file=sys.stderr)
                return

    def _take(self, frames: list[bytes]) -> None:
        ids: list[tuple[int, int]] = []
        numbers: list[int] = []
        for data in frames:
            if self.only_counts and data[KIND_AT - 4] == BaseCommand.MESSAGE:
                numbers.append(int.from_bytes(data[-NUMBER_BYTES:], "big"))
                continue
            command = BaseCommand.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")])
            if command.type == BaseCommand.ACK_RESPONSE:
                self.answered.update(self._open.pop(command.ack_response.request_id, ()))
            elif command.type == BaseCommand.MESSAGE:
                told = command.message.message_id
                ids.append((told.ledger_id, told.entry_id))
                numbers.append(int.from_bytes(data[-NUMBER_BYTES:], "big"))
                self.redelivered += command.message.redelivery_count > 0
        if not self.only_counts and numbers:
            self._judge(numbers)
            self._requests += 1
            self._open[self._requests] = numbers
            self._client.send(ack_frame(ids, self._requests))
            self._client.flow(len(ids))
        elif numbers:
            self.came.update(numbers)
            self.again |= BitMap(numbers) & self.answered
            self._client.flow(len(numbers))

    def _judge(self, numbers: list[int]) -> None:
        at = now_ms()
        self.first_at = self.first_at or time.perf_counter()
        came = BitMap(numbers)
        self.again |= came & self.answered
        self.came |= came
        for number in came & self._plan.due:
            due = self._plan.times[number]
            self.late.append((at - due, due >= self._up_ms))
        self.early += sum(self._plan.times[number] > at for number in numbers)


def waiting(ready: Ready) -> int:
    with urlopen(f"{ready.web_url}/admin/v2/persistent/{NAME}/stats", timeout=60) as answer:
        return int(json.load(answer)["subscriptions"]["s"]["msgDelayed"])


def switch_delays_off(ready: Ready) -> None:
    body = json.dumps({"active": False, "tickTime": 1000}).encode()
    url = f"{ready.web_url}/admin/v2/persistent/{NAME}/delayedDelivery"
    urlopen(Request(url, body, {"Content-Type": "application/json"}, method="POST"), timeout=60).close()


def until_known(ready: Ready, least: int, began: float) -> float:
    """Seconds until at least so many are known to wait."""
    while waiting(ready) < least and time.perf_counter() - began < SECONDS_MAX:
        time.sleep(0.5)
    return time.perf_counter() - began


def lateness(late: list[tuple[int, bool]]) -> dict[str, Any]:
    """Lateness of all messages, with those that came due while the server was down, and of the others alone."""
    while_up = [each for each, was_up in late if was_up]
    return {
        "came": len(late),
        **_quantiles([each for each, _ in late]),
        "came_due_while_it_was_up": {"came": len(while_up), **_quantiles(while_up)},
    }


def _quantiles(late: list[int]) -> dict[str, int]:
    ordered = sorted(late) or [0]
    return {
        "late_ms_p50": round(statistics.median(ordered)),
        "late_ms_p99": ordered[len(ordered) * 99 // 100],
        "late_ms_worst": ordered[-1],
    }


def over_a_restart(server: ServerProcess, consumer: Consumer, plan: Plan, *, politely: bool) -> dict[str, Any]:
    """Figures of the restart; `came` and lateness are those before it."""
    before = lateness(consumer.late)
    began = time.perf_counter()
    if politely:
        assert server.stop() == 0, server.log.read_text()[-2000:]
    else:
        server.kill()
    down = time.perf_counter()
    consumer.detach()
    launched = time.perf_counter()
    ready = server.start()
    start = process_use(ready.pid)
    up = time.perf_counter()
    consumer.attach(ready)
    far = plan.count - len(plan.unseen) - len(plan.due)
    known = until_known(ready, far, up)
    use = process_use(ready.pid)
    assert consumer.first_at is not None, "nothing came"
    found = {
        "how": "stopped" if politely else "killed",
        "before": before,
        "seconds_to_end": round(down - began, 2),
        "seconds_until_ready": round(up - launched, 2),
        "seconds_until_the_first_due": round(consumer.first_at - up, 2),
        "seconds_until_all_are_known": round(known, 2),
        "cpu_us_per_message": round((use.cpu_seconds - start.cpu_seconds) / plan.count * 1e6, 2),
        "resident_mb_ready": round(start.resident_mb, 1),
        "resident_mb_all_known": round(use.resident_mb, 1),
        "peak_mb": round(peak_mb(ready.pid), 1),
    }
    print(json.dumps(found), file=sys.stderr)
    return found


def play(server: ServerProcess, count: int, due: int, seconds: float) -> dict[str, Any]:
    ready = server.start()
    RawClient(ready.broker_url).subscribe(TOPIC, "s", CommandSubscribe.Shared)
    empty = process_use(ready.pid).resident_mb
    began = time.perf_counter()
    plan = Plan(count, due, now_ms(), seconds)
    planned = time.perf_counter()
    consumer = Consumer(plan)
    consumer.attach(ready)
    ids = publish(ready, plan)
    published = time.perf_counter()
    print(f"published in {published - planned:.1f} s", file=sys.stderr)
    consumer.acknowledge_unseen(ids)
    far = count - len(plan.unseen) - len(plan.due)
    until_known(ready, far, published)
    told: dict[str, Any] = {
        "messages": count,
        "acknowledged_unseen": len(plan.unseen),
        "due": len(plan.due),
        "published_per_second": round(count / (published - planned)),
        "resident_mb_empty": round(empty, 1),
        "resident_mb_published": round(process_use(ready.pid).resident_mb, 1),
    }
    _pause_until(began + 0.5 * seconds)
    told["restarts"] = [over_a_restart(server, consumer, plan, politely=False)]
    _pause_until(began + 0.6 * seconds)
    told["restarts"].append(over_a_restart(server, consumer, plan, politely=True))
    _pause_until(began + seconds + 1)
    return told | _ending(server, consumer, plan)


def _pause_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.perf_counter()))


def _ending(server: ServerProcess, consumer: Consumer, plan: Plan) -> dict[str, Any]:
    """Everything else comes at once."""
    assert server.ready is not None
    last, early = lateness(consumer.late), consumer.early
    consumer.only_counts = True
    began = time.perf_counter()
    switch_delays_off(server.ready)
    wanted = plan.count - len(plan.unseen)
    while len(consumer.came) < wanted and time.perf_counter() - began < SECONDS_MAX:
        time.sleep(0.2)
    seconds = time.perf_counter() - began
    peak = peak_mb(server.ready.pid)
    server.stop()
    consumer.detach()
    every = BitMap(range(plan.count))
    return {
        "after_the_last_restart": last,
        "seconds_for_the_rest": round(seconds, 1),
        "peak_mb_at_the_end": round(peak, 1),
        "early": early,
        "never_came": len(every - plan.unseen - consumer.came),
        "came_after_their_acknowledgement_was_answered": len(consumer.again),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--due", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=240, help="over which those come due")
    options = parser.parse_args()
    unlimited = ("maxUnackedMessagesPerConsumer=0", "maxUnackedMessagesPerSubscription=0")
    settings = ("isDelayedDeliveryDeliverAtTimeStrict=true", *unlimited)
    with (
        tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch,
        ServerProcess(Path(scratch), settings) as server,
    ):
        print(json.dumps(play(server, options.messages, options.due, options.seconds), indent=1), flush=True)


if __name__ == "__main__":
    main()
