"""Settings that are each allowed and together are not what anybody wants: pairs of keys, with what will happen. Pure.

For `bin/pulsar config check` and `bin/pulsar doctor`. What cannot be at all is refused by the settings dataclasses themselves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ports.settings import fold

FRAME_PADDING_BYTES = 10 * 1024


@dataclass(frozen=True, slots=True)
class Contradiction:
    """`keys` with what they do to each other, and what to set instead."""

    keys: tuple[str, ...]
    consequence: str
    remedy: str

    def __str__(self) -> str:
        return f"{', '.join(self.keys)}: {self.consequence}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """Holds for the values of `keys` in the settings; a process that lacks one of them is not asked."""

    keys: tuple[str, ...]
    is_broken: Callable[..., bool]
    consequence: str
    remedy: str


def contradictions(settings: Sequence[Any]) -> Iterator[Contradiction]:
    """Of instances of settings dataclasses, those of one process."""
    values: Mapping[str, Any] = {fold(field.name): getattr(one, field.name) for one in settings for field in fields(one)}
    for rule in _RULES:
        folded = [fold(key) for key in rule.keys]
        if all(key in values for key in folded) and rule.is_broken(*(values[key] for key in folded)):
            yield Contradiction(rule.keys, rule.consequence, rule.remedy)


def _both_and_less(one: int, other: int) -> bool:
    """0 is no limit."""
    return 0 < other < one


_RULES = (
    _Rule(
        ("allowAutoTopicCreation", "allowAutoTopicCreationType"),
        lambda allowed, kind: not allowed and kind == "partitioned",
        "topics are not made automatically, so the type of those that are is never used",
        "set allowAutoTopicCreation=true, or leave the type out",
    ),
    _Rule(
        ("defaultNumPartitions", "maxNumPartitionsPerPartitionedTopic"),
        _both_and_less,
        "topics with the default number of partitions are refused",
        "set defaultNumPartitions to at most the maximum",
    ),
    _Rule(
        ("maxMessageSize", "nettyMaxFrameSizeBytes"),
        lambda size, frame: size + FRAME_PADDING_BYTES > frame,
        "the largest messages that the broker takes are refused by the bookie",
        "set nettyMaxFrameSizeBytes to maxMessageSize + 10240 or more",
    ),
    _Rule(
        ("maxMessageSize", "dispatcherMaxReadSizeBytes"),
        lambda size, read: size > read,
        "a read holds less than one of the largest messages, so these are read one at a time",
        "set dispatcherMaxReadSizeBytes to maxMessageSize or more",
    ),
    _Rule(
        ("maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"),
        _both_and_less,
        "the subscription's limit is reached before any consumer's",
        "set maxUnackedMessagesPerSubscription to the consumers' limit or more",
    ),
    _Rule(
        ("maxConsumersPerSubscription", "maxConsumersPerTopic"),
        _both_and_less,
        "the topic's limit is reached before any subscription's",
        "set maxConsumersPerTopic to the subscriptions' limit or more",
    ),
    _Rule(
        ("brokerMaxConnectionsPerIp", "brokerMaxConnections"),
        _both_and_less,
        "the broker's limit is reached before any address's",
        "set brokerMaxConnections to the addresses' limit or more",
    ),
    _Rule(
        ("backlogQuotaDefaultLimitBytes", "backlogQuotaDefaultLimitGB"),
        lambda size, gigabytes: size > 0 and gigabytes > 0,
        "the limit in GB wins, the limit in bytes is not used",
        "set one of them",
    ),
    _Rule(
        ("ttlDurationDefaultInSeconds", "backlogQuotaDefaultLimitSecond"),
        _both_and_less,
        "the backlog is over its quota in time before any message expires",
        "set backlogQuotaDefaultLimitSecond to the time to live or more",
    ),
    _Rule(
        ("backlogQuotaCheckEnabled", "backlogQuotaDefaultLimitBytes", "backlogQuotaDefaultLimitSecond"),
        lambda checked, size, seconds: not checked and (size > 0 or seconds > 0),
        "there is a quota, and nobody looks at it",
        "set backlogQuotaCheckEnabled=true, or no limit",
    ),
    _Rule(
        ("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB"),
        lambda minutes, megabytes: (minutes == 0) != (megabytes == 0),
        "with one of them 0 nothing is retained, whatever the other says",
        "set both; -1 is no limit",
    ),
    _Rule(
        ("loadBalancerReportUpdateMinIntervalMillis", "loadBalancerReportUpdateMaxIntervalMinutes"),
        lambda milliseconds, minutes: milliseconds > minutes * 60_000,
        "the least time between two reports is longer than the longest",
        "set loadBalancerReportUpdateMinIntervalMillis to less than loadBalancerReportUpdateMaxIntervalMinutes",
    ),
    _Rule(
        ("exposeTopicLevelMetricsInPrometheus", "exposeConsumerLevelMetricsInPrometheus"),
        lambda topics, consumers: consumers and not topics,
        "metrics of consumers come with those of topics only",
        "set exposeTopicLevelMetricsInPrometheus=true",
    ),
    _Rule(
        ("exposeTopicLevelMetricsInPrometheus", "exposeProducerLevelMetricsInPrometheus"),
        lambda topics, producers: producers and not topics,
        "metrics of producers come with those of topics only",
        "set exposeTopicLevelMetricsInPrometheus=true",
    ),
    _Rule(
        ("brokerServicePort", "webServicePort"),
        lambda binary, web: binary == web != 0,
        "both listen on one port, and the broker does not start",
        "set them apart",
    ),
    _Rule(
        ("bookiePort", "httpServerPort", "httpServerEnabled"),
        lambda binary, web, enabled: enabled and binary == web != 0,
        "both listen on one port, and the bookie does not start",
        "set them apart",
    ),
    _Rule(
        ("authorizationEnabled", "authenticationEnabled"),
        lambda authorized, authenticated: authorized and not authenticated,
        "nobody has a role by which to decide",
        "set authenticationEnabled=true",
    ),
)
