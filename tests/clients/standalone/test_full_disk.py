"""A standalone on a file system of 60 MB that is filled: by its own messages at full speed, by a foreign file, and by a
program that takes every block that it can get.

Publishing is refused by name; reading, acknowledging, unsubscribing and deleting go on, also for a consumer that is connected
all the while; a kill and a start while nothing is free change nothing of that; with room publishing is back within seconds, and
every acknowledged message is read.
"""

import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts
from tests.clients.python_client import until
from tests.clients.server_process import ServerProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

MEGABYTES = 60
MESSAGE_BYTES = 4096
PUBLISHED_MAX = 60_000_000 // MESSAGE_BYTES
BACK_SECONDS_MAX = 60.0
RECEIVE_MS_MAX = 60_000
"""The machine may be busy with other things."""
BLOCK_BYTES = 4096
GREEDY_LEFT_BYTES = 300_000
LEFT_BYTES = 2_000_000
TOPIC, OTHER = "persistent://public/default/filled", "persistent://public/default/other"
REFUSALS = (pulsar.ProducerBlockedQuotaExceededException, pulsar.ProducerBlockedQuotaExceededError)


class Run:
    """One server on the small file system, and what was acknowledged."""

    def __init__(self, server: ServerProcess, mount: Path) -> None:
        self.server, self.mount = server, mount
        self.acknowledged: list[bytes] = []

    @contextmanager
    def client(self) -> Iterator[pulsar.Client]:
        assert self.server.ready is not None
        logger = logging.getLogger("pulsar client on a full disk")
        logger.setLevel(logging.CRITICAL)  # it tells of each message that is refused
        client = pulsar.Client(self.server.ready.broker_url, operation_timeout_seconds=60, logger=logger)
        try:
            yield client
        finally:
            with suppress(pulsar.PulsarException):
                client.close()

    def publish_until_refused(self, client: pulsar.Client, pause_seconds: float = 0.0) -> Exception:
        """The refusal of the first message that was not stored, in order of publishing."""
        producer = client.create_producer(TOPIC, batching_enabled=False, send_timeout_millis=60_000, block_if_queue_full=True)
        refusals: list[Exception] = []

        def answered(number: int) -> object:
            def tell(result: pulsar.Result, _: pulsar.MessageId) -> None:
                if result == pulsar.Result.Ok:
                    self.acknowledged.append(payload(number))
                else:
                    refusals.append(RuntimeError(str(result)))

            return tell

        for number in range(len(self.acknowledged), PUBLISHED_MAX):
            if refusals:
                break
            try:
                producer.send_async(payload(number), answered(number))
            except pulsar.PulsarException as error:
                refusals.append(error)
            if pause_seconds:
                time.sleep(pause_seconds)
        with suppress(pulsar.PulsarException):
            producer.flush()
        with suppress(pulsar.PulsarException):
            producer.close()
        assert refusals, "60 MB were taken by a disk of 60 MB"
        return refusals[0]

    def check_published_is_refused(self, client: pulsar.Client) -> None:
        for topic in (TOPIC, OTHER):
            with pytest.raises(REFUSALS):
                client.create_producer(topic)

    def check_all_is_read(self, client: pulsar.Client, subscription: str) -> None:
        consumer = client.subscribe(TOPIC, subscription, initial_position=pulsar.InitialPosition.Earliest)
        missing = set(self.acknowledged)
        while missing:
            message = consumer.receive(RECEIVE_MS_MAX)
            missing.discard(message.data())
            consumer.acknowledge(message)
        consumer.close()

    def check_publishing_is_back(self, client: pulsar.Client) -> float:
        began = time.monotonic()
        while True:
            try:
                producer = client.create_producer(TOPIC)
                producer.send(b"there is room")
            except REFUSALS:
                assert time.monotonic() - began < BACK_SECONDS_MAX
            else:
                producer.close()
                return time.monotonic() - began

    def fill(self) -> Path:
        """Fills nearly all that is left with a foreign file; the disk is then far beyond the threshold."""
        filler, found = self.mount / "filler", os.statvfs(self.mount)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - LEFT_BYTES)
        return filler

    def admin(self, method: str, path: str) -> Any:
        """Answer of the admin REST; None for an empty one."""
        assert self.server.ready is not None
        request = urllib.request.Request(f"{self.server.ready.web_url}/admin/v2/{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return json.loads(text) if text else None

    def connected_since(self, subscription: str) -> str:
        """Connection time of the one consumer on the topic that is open now. A full disk may refuse the request."""
        answers: list[Any] = []

        def has_answer() -> bool:
            with suppress(urllib.error.HTTPError):
                answers.append(self.admin("GET", "persistent/public/default/filled/stats"))
            return bool(answers)

        until(has_answer)
        [consumer] = answers[0]["subscriptions"][subscription]["consumers"]
        return str(consumer["connectedSince"])


class Greedy:
    """Another program, which takes every block that it can get, from GREEDY_LEFT_BYTES on."""

    def __init__(self, mount: Path) -> None:
        self.refused_times = 0
        self._file = (mount / "greedy").open("wb")
        self._mount, self._end = mount, 0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._take_all)

    def __enter__(self) -> "Greedy":
        found = os.statvfs(self._mount)
        self._take(found.f_bavail * found.f_frsize - GREEDY_LEFT_BYTES)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the filling, and frees all of the space."""
        self._stops.set()
        self._thread.join()
        self._file.close()
        (self._mount / "greedy").unlink()

    def _take(self, size_bytes: int) -> None:
        os.posix_fallocate(self._file.fileno(), self._end, size_bytes)
        self._end += size_bytes

    def _take_all(self) -> None:
        while not self._stops.is_set():
            try:
                self._take(BLOCK_BYTES)
            except OSError:
                self.refused_times += 1
                self._stops.wait(0.000_2)


def payload(number: int) -> bytes:
    return b"%d " % number + bytes(MESSAGE_BYTES)


@contextmanager
def on_small_disk(tmp_path: Path, *settings: str) -> Iterator[Run]:
    need_loop_mounts()
    with LoopMount(MEGABYTES) as mount, ServerProcess(tmp_path / "server", settings) as server:
        (tmp_path / "server").mkdir()
        (tmp_path / "server" / "data").symlink_to(mount.path)
        server.start()
        yield Run(server, mount.path)


def test_a_disk_filled_by_messages_refuses_messages_alone_and_a_deleted_topic_makes_room(tmp_path: Path) -> None:
    with on_small_disk(tmp_path) as run:
        with run.client() as client:
            client.subscribe(TOPIC, "kept").close()
            refusal = run.publish_until_refused(client)
            assert "ProducerBlockedQuotaExceeded" in str(refusal), refusal
            run.check_published_is_refused(client)
            run.check_all_is_read(client, "while full")
        run.server.kill()
        run.server.start()
        with run.client() as client:
            run.check_all_is_read(client, "after a kill")
            run.admin("DELETE", "persistent/public/default/filled/subscription/kept")
            run.admin("DELETE", "persistent/public/default/filled?force=true")
            run.acknowledged.clear()
            run.check_publishing_is_back(client)


def test_a_disk_filled_by_others_is_got_over_without_a_restart_and_with_one(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, "diskCheckInterval=1000") as run:
        with run.client() as client:
            client.subscribe(TOPIC, "kept").close()  # without it what "while full" has acknowledged may be deleted
            producer = client.create_producer(TOPIC, batching_enabled=False)
            for number in range(200):
                producer.send(payload(number))
                run.acknowledged.append(payload(number))
            filler = run.fill()
            run.publish_until_refused(client)
            run.check_published_is_refused(client)
            run.check_all_is_read(client, "while full")
            run.server.kill()
            run.server.start()
        with run.client() as client:
            run.check_published_is_refused(client)
            run.check_all_is_read(client, "after a kill")
            filler.unlink()
            run.check_publishing_is_back(client)
            run.check_all_is_read(client, "with room")
        assert run.server.log.read_text().count("journal file not prepared") <= 2


def test_a_program_that_takes_every_block_ends_publishing_alone_and_no_connected_consumer_notices(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, "diskCheckInterval=1000") as run:
        with run.client() as client:
            client.subscribe(TOPIC, "kept").close()
            staying = client.subscribe(TOPIC, "staying")
            producer = client.create_producer(TOPIC, batching_enabled=False)
            for number in range(200):
                producer.send(payload(number))
                run.acknowledged.append(payload(number))
            producer.close()
            since = run.connected_since("staying")
            greedy = Greedy(run.mount)
            with greedy:
                run.publish_until_refused(client)
                run.check_published_is_refused(client)
                for wanted in run.acknowledged:
                    message = staying.receive(RECEIVE_MS_MAX)
                    assert message.data() == wanted
                    staying.acknowledge(message)
                assert run.connected_since("staying") == since
                run.check_all_is_read(client, "while full")
                run.server.kill()
                run.server.start()
                with run.client() as another:
                    run.check_published_is_refused(another)
                    run.check_all_is_read(another, "after a kill")
                assert greedy.refused_times > 0, "the disk never was full to the last block"
            with run.client() as another:
                run.check_publishing_is_back(another)
                run.check_all_is_read(another, "with room")
        log = run.server.log.read_text()
        assert log.count("journal file not prepared") <= 2
        assert "closed after a failure of its log" not in log
