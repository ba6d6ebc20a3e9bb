"""`pulsar-perf produce`: batches sent at a rate by one or more producers, receipts timed.

Connections that break are made again and what has no receipt is sent again (`cli.client.sender`): it goes on over restarts of
brokers and unloads. One thread; producers take turns.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.client.errors import ClientError, RefusedByBroker
from cli.client.lasting import Notices, attend
from cli.client.sender import PRODUCER_ID, Role, Sender
from cli.client_configuration import ClientConfiguration
from cli.perf.batches import Batches
from cli.perf.progress import Progress
from cli.perf.topics import topic_names, with_partitions
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSend

OUTSTANDING_DEFAULT = 1000
WAIT_SECONDS_MAX = 0.05
TURN_MAX = 64
"""Batches that are sent before receipts are looked at again."""


def produce(
    configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None], notices: Notices
) -> None:
    """Until as many are acknowledged as asked for, the time is over, or it is interrupted: the figures are told in any case.
    ClientError, WrongUsage.
    """
    batches = Batches(values)
    topics = with_partitions(topic_names(values, values["separator"]), configuration)
    producers = values["num-producers"]
    if producers < 1 or values["size"] < 0:
        raise WrongUsage("--num-producers must be at least 1, --size at least 0")
    run = _Run(values, batches, Progress("produced", write, values["json"], values["stats-interval-seconds"]), notices)
    try:
        for number, partitions in enumerate(partitions for partitions in topics for _ in range(producers)):
            for topic in partitions:
                name = values.get("producer-name") or ""
                numbered = f"{name}-{number}" if name and len(topics) * producers > 1 else name
                run.add(topic, configuration, Role(numbered, values["access-mode"]), len(partitions))
        run.run()
    finally:
        run.finish()


class _Member:
    """One producer of one topic or partition: it counts its own messages."""

    def __init__(self, sender: Sender, outstanding_max: int) -> None:
        self.sender, self.outstanding_max, self.sequence = sender, outstanding_max, 0

    @property
    def is_free(self) -> bool:
        return len(self.sender.unanswered) < self.outstanding_max


class _Run:
    """All producers of one call; `_count` is what was sent, the progress what was acknowledged."""

    def __init__(self, values: Mapping[str, Any], batches: Batches, progress: Progress, notices: Notices) -> None:
        self._values, self._batches, self._progress, self._notices = values, batches, progress, notices
        self._rate, self._limit, self._seconds = values["rate"], values["num-messages"], values["test-duration"]
        self._window_seconds = values["batch-time-window"] / 1000
        self._timeout, self._ends_at_failure = values["send-timeout"], values["exit-on-failure"]
        self._members: list[_Member] = []
        self._count = self._turn = 0
        self._begun = time.monotonic()

    def add(self, topic: str, configuration: ClientConfiguration, role: Role, partitions: int) -> None:
        """Lets one more producer in. ClientError."""
        bound = self._values["max-outstanding"] or OUTSTANDING_DEFAULT
        across = self._values["max-outstanding-across-partitions"]
        sender = Sender(topic, configuration, self._notices, role)
        sender.open()
        self._members.append(_Member(sender, max(1, min(bound, across // partitions)) if across else bound))

    def run(self) -> None:
        self._begun = time.monotonic()
        self._progress.restart()
        while not self._is_over():
            sent = self._send_due()
            pause = min(WAIT_SECONDS_MAX, max(self._window_seconds, 1 / max(1, self._rate)))
            self._take_receipts(0.0 if sent else pause)
            self._progress.tick()
        while any(member.sender.unanswered for member in self._members):
            self._take_receipts(WAIT_SECONDS_MAX)
            self._progress.tick()

    def finish(self) -> None:
        """Tells the figures, whatever ended it."""
        for member in self._members:
            self._progress.resent += member.sender.resent
            self._progress.unanswered += sum(each.messages for each in member.sender.unanswered)
            member.sender.close()
        self._progress.reconnected = self._notices.lost_count
        if self._members:
            self._progress.finish()

    def _is_over(self) -> bool:
        passed = time.monotonic() - self._begun
        return bool((self._limit > 0 and self._count >= self._limit) or (self._seconds > 0 and passed >= self._seconds))

    def _send_due(self) -> bool:
        """Some batches; whether there was one."""
        for number in range(TURN_MAX):
            due, member = self._due(), self._next_free()
            if not due or member is None:
                return number > 0
            self._send(member, due)
        return True

    def _next_free(self) -> _Member | None:
        for _ in self._members:
            self._turn = (self._turn + 1) % len(self._members)
            if self._members[self._turn].is_free:
                return self._members[self._turn]
        return None

    def _due(self) -> int:
        """The number of messages that may be sent now, one batch at most; without a rate, a whole one."""
        most = self._batches.messages_max
        due = most if self._rate <= 0 else int((time.monotonic() - self._begun) * self._rate) - self._count + 1
        if self._limit > 0:
            due = min(due, self._limit - self._count)
        return max(0, min(due, most))

    def _send(self, member: _Member, messages: int) -> None:
        frame = partial(self._frame, member, member.sequence, messages)
        member.sender.send(member.sequence, messages, self._batches.size_bytes(messages), frame)
        member.sequence += messages
        self._count += messages

    def _frame(self, member: _Member, sequence: int, messages: int) -> bytes:
        command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=PRODUCER_ID, sequence_id=sequence))
        if messages > 1:
            command.send.num_messages = messages
        return encode(command, self._batches.section(member.sender.name, sequence, messages))

    def _take_receipts(self, wait_seconds: float) -> None:
        attend([member.sender for member in self._members], wait_seconds)
        now = time.monotonic()
        for member in self._members:
            try:
                for each in member.sender.answered():
                    is_warm = each.at - self._begun >= self._values["warmup-time"]
                    self._progress.add(each.messages, each.size_bytes, (now - each.at) * 1000, is_warm=is_warm)
            except RefusedByBroker as error:
                self._fail(member, error)
            self._forget_late(member, now)

    def _forget_late(self, member: _Member, now: float) -> None:
        """With --send-timeout: what has no receipt in time has failed, and is not sent again."""
        waiting = member.sender.unanswered
        while self._timeout > 0 and waiting and now - waiting[0].at > self._timeout:
            self._fail(member, ClientError(f"{member.sender.topic}: no receipt after {self._timeout} s {member.sender.reason}"))

    def _fail(self, member: _Member, error: ClientError) -> None:
        """The oldest message of a producer has failed."""
        if self._ends_at_failure or not member.sender.forget_oldest(error):
            raise error
        self._progress.failed += 1
