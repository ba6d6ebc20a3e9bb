"""`pulsar-perf consume` and `read`: entries counted by what their metadata say, payloads never looked at.

Connections that break are made again (`cli.client.subscription`): it goes on over restarts of brokers and unloads, and counts
no entry twice because of them. One thread; consumers are looked at in turn.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.admin.commands.message_ids import position
from cli.client.consume import CONFIRM_SECONDS_MAX, POSITIONS, TYPES, reader
from cli.client.lasting import LOOK_SECONDS, Notices, attend
from cli.client.subscription import Arrival, Reading, Subscription
from cli.client_configuration import ClientConfiguration
from cli.perf.progress import Progress
from cli.perf.topics import topic_names, with_partitions
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import CommandSubscribe
from wire.payloads import message_metadata, split_section

Write = Callable[[str], None]


def consume(configuration: ClientConfiguration, values: Mapping[str, Any], write: Write, notices: Notices) -> None:
    """ClientError, WrongUsage. The figures are told whatever ends it."""
    if values["num-consumers"] > 1 and values["subscription-type"] == "Exclusive":
        raise WrongUsage("Only one consumer is allowed when subscriptionType is Exclusive: see -st")
    abouts = [subscribe_about(values, name) for name in subscription_names(values) for _ in range(values["num-consumers"])]
    _run(configuration, values, abouts, write, notices, acknowledges=True)


def read(configuration: ClientConfiguration, values: Mapping[str, Any], write: Write, notices: Notices) -> None:
    """ClientError, WrongUsage. The figures are told whatever ends it."""
    about = reader(*position(values["start-message-id"]), is_inclusive=False)
    _run(configuration, values, [about], write, notices, acknowledges=False)


def subscribe_about(values: Mapping[str, Any], name: str) -> CommandSubscribe:
    """A consumer's command, without its topic."""
    kind, start = TYPES[values["subscription-type"]], POSITIONS[values["subscription-position"]]
    about = CommandSubscribe(subscription=name, sub_type=kind, initial_position=start)  # type: ignore[arg-type]
    about.replicate_subscription_state = bool(values["replicated"])
    return about


def subscription_names(values: Mapping[str, Any]) -> Sequence[str]:
    """Names, as Apache's tool takes them: one for each subscription, or one that is numbered. WrongUsage."""
    count, prefix = values["num-subscriptions"], values.get("subscriber-name")
    names = [prefix] if prefix else values["subscriptions"]
    if len(names) == count or count == 1:
        return list(names)
    if len(names) == 1:
        return [f"{names[0]}-{number}" for number in range(count)]
    raise WrongUsage(f"The size of subscriptions list should be equal to --num-subscriptions: {len(names)} names, {count}")


def _run(
    configuration: ClientConfiguration,
    values: Mapping[str, Any],
    abouts: Sequence[CommandSubscribe],
    write: Write,
    notices: Notices,
    *,
    acknowledges: bool,
) -> None:
    topics = with_partitions(topic_names(values), configuration)
    run = _Run(values, Progress("received", write, values["json"], values["stats-interval-seconds"]), notices)
    across = values.get("receiver-queue-size-across-partitions", 0)
    try:
        for partitions in topics:
            queue = values["receiver-queue-size"]
            if across and len(partitions) > 1:
                queue = max(1, min(queue, across // len(partitions)))
            for topic in partitions:
                for about in abouts:
                    run.add(_member(topic, about, max(1, queue), configuration, notices, values, acknowledges=acknowledges))
        run.run()
    finally:
        run.finish()


def _member(
    topic: str,
    about: CommandSubscribe,
    queue: int,
    configuration: ClientConfiguration,
    notices: Notices,
    values: Mapping[str, Any],
    *,
    acknowledges: bool,
) -> Subscription:
    delay = values.get("acks-delay-millis", 0) / 1000
    reading = Reading(queue, acknowledges, ack_delay_seconds=delay)
    member = Subscription(topic, about, reading, configuration, notices)
    member.open()
    return member


class _Run:
    """All consumers of one call."""

    def __init__(self, values: Mapping[str, Any], progress: Progress, notices: Notices) -> None:
        self._progress, self._notices = progress, notices
        self._limit, self._seconds, self._rate = values["num-messages"], values["test-duration"], values["rate"]
        self._members: list[Subscription] = []

    def add(self, member: Subscription) -> None:
        self._members.append(member)

    def run(self) -> None:
        self._progress.restart()
        while not self._is_over():
            self._progress.tick()
            attend(self._members, LOOK_SECONDS)
            for member in self._members:
                for arrival in member.arrivals():
                    self._count(member, arrival)
                    if self._is_over():
                        break
        self._confirm()

    def finish(self) -> None:
        """Tells the figures, whatever ended it."""
        for member in self._members:
            self._progress.repeated += member.repeated
            member.close()
        self._progress.reconnected = self._notices.lost_count
        if self._members:
            self._progress.finish()

    def _is_over(self) -> bool:
        return bool(
            (self._limit > 0 and self._progress.total >= self._limit)
            or (self._seconds > 0 and time.monotonic() - self._progress.begun >= self._seconds)
        )

    def _count(self, member: Subscription, arrival: Arrival) -> None:
        try:
            split = split_section(arrival.section)
            metadata = message_metadata(split)
        except RemoteError:  # it is no message, but it took a permit
            self._progress.failed += 1
            member.done(arrival, 1)
            return
        messages = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
        self._progress.add(messages, len(split.payload), max(0.0, time.time() * 1000 - metadata.publish_time))
        member.done(arrival, messages)
        if self._rate > 0:
            time.sleep(max(0.0, self._progress.begun + self._progress.total / self._rate - time.monotonic()))

    def _confirm(self) -> None:
        """Waits a while until the acknowledgements are stored."""
        deadline = time.monotonic() + CONFIRM_SECONDS_MAX
        for member in self._members:
            member.flush()
        while not all(member.is_confirmed for member in self._members) and time.monotonic() < deadline:
            attend(self._members, LOOK_SECONDS)
            for member in self._members:
                for _ in member.arrivals():
                    pass  # more than was asked for: it stays in the subscription
