"""Settings that are each allowed and together are not what anybody wants: keys, what will happen, what to set instead. Pure.

For the start of every process and for `interpulse config check`. Those that leave a process unable to do its work end the start
(`ends_start`); the others are warnings. The settings dataclasses themselves refuse impossible values.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from broker.security.own_credentials import TLS_PLUGINS, own_certificate
from broker.service.load.settings import OTHER_STRATEGIES, THRESHOLD_SHEDDER
from ports.settings import fold, setting_text, shown_value

FRAME_PADDING_BYTES = 10 * 1024
STANDALONE = "standalone"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """`settings`, each as KEY=VALUE, with what they do to each other, and what to set instead."""

    settings: tuple[str, ...]
    consequence: str
    remedy: str
    ends_start: bool

    def __str__(self) -> str:
        return f"{', '.join(self.settings)}: {self.consequence}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """Holds for the values of `keys` in the settings; a process that lacks one of them is not asked."""

    keys: tuple[str, ...]
    is_broken: Callable[..., bool]
    consequence: str
    remedy: str
    ends_start: bool = False
    only_for: str = ""
    """The one kind of process that is asked; empty: every kind."""


def contradictions(settings: Sequence[Any], kind: str) -> Iterator[Contradiction]:
    """Contradictions among settings dataclasses of one process of this kind (`broker`, `standalone`, ...)."""
    values: Mapping[str, Any] = {fold(field.name): getattr(one, field.name) for one in settings for field in fields(one)}
    for rule in _RULES:
        folded = [fold(key) for key in rule.keys]
        if rule.only_for in ("", kind) and all(key in values for key in folded):
            found = [values[key] for key in folded]
            if rule.is_broken(*found):
                shown = tuple(
                    f"{key}={shown_value(key, setting_text(value))}" for key, value in zip(rule.keys, found, strict=True)
                )
                yield Contradiction(shown, rule.consequence, rule.remedy, rule.ends_start)


def _is_same_port(one: int | None, other: int | None) -> bool:
    """0 picks a free one, None is none."""
    return one == other and bool(one)


def _one_port_twice(one: str, other: str) -> _Rule:
    return _Rule((one, other), _is_same_port, "both would listen on one port", f"set {one} and {other} apart", ends_start=True)


def _both_and_less(one: int, other: int) -> bool:
    """0 is no limit."""
    return 0 < other < one


def _certificate_in_the_clear(kind: str, key: str) -> _Rule:
    """A standalone asks no other broker, so there it does no harm."""
    return _Rule(
        ("brokerClientAuthenticationPlugin", key),
        lambda plugin, is_tls: plugin.strip() in TLS_PLUGINS and not is_tls,
        "a certificate is shown over TLS alone, so brokers would not know this one",
        f"set {key}=true",
        ends_start=kind != STANDALONE,
        only_for=kind,
    )


def _no_certificate(kind: str) -> _Rule:
    return _Rule(
        ("brokerClientAuthenticationPlugin", "brokerClientAuthenticationParameters", "brokerClientCertificateFilePath"),
        lambda plugin, parameters, path: (
            plugin.strip() in TLS_PLUGINS and not own_certificate(plugin, parameters, path, path)[0]
        ),
        "there is no certificate to show, so brokers would not know this one",
        "set brokerClientCertificateFilePath and brokerClientKeyFilePath",
        ends_start=kind != STANDALONE,
        only_for=kind,
    )


_PLACES_OF_A_CERTIFICATE = (
    ("broker", "brokerClientTlsEnabled"),
    (STANDALONE, "brokerClientTlsEnabled"),
    ("proxy", "tlsEnabledWithBroker"),
)
_BROKER_PORTS = ("brokerServicePort", "brokerServicePortTls", "webServicePort", "webServicePortTls")
_PROXY_PORTS = ("servicePort", "servicePortTls", "webServicePort", "webServicePortTls")
_PAIRS_OF_PORTS = dict.fromkeys(pair for ports in (_BROKER_PORTS, _PROXY_PORTS) for pair in itertools.combinations(ports, 2))

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
        "there is a quota, and no check of it",
        "set backlogQuotaCheckEnabled=true, or no limit",
    ),
    _Rule(
        ("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB"),
        lambda minutes, megabytes: (minutes == 0) != (megabytes == 0),
        "with one of them 0 nothing is retained, for any value of the other",
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
    *(_one_port_twice(one, other) for one, other in _PAIRS_OF_PORTS),
    _Rule(
        ("brokerServicePort", "brokerServicePortTls"),
        lambda plain, tls: plain is None and tls is None,
        "no client could connect",
        "set one of them",
        ends_start=True,
    ),
    _Rule(
        ("enablePersistentTopics", "enableNonPersistentTopics"),
        lambda persistent, non_persistent: not persistent and not non_persistent,
        "every topic would be refused",
        "set one of them to true",
        ends_start=True,
    ),
    _Rule(
        ("subscriptionTypesEnabled",),
        lambda types: not types,
        "every consumer is refused",
        "name the types that consumers may ask for, or leave it out",
    ),
    _Rule(
        ("managedLedgerDefaultEnsembleSize",),
        lambda bookies: bookies > 1,
        "a standalone has one bookie, so no topic could be written",
        "set it, managedLedgerDefaultWriteQuorum and managedLedgerDefaultAckQuorum to 1, or leave them out",
        ends_start=True,
        only_for=STANDALONE,
    ),
    _Rule(
        ("loadBalancerLoadSheddingStrategy",),
        lambda strategy: strategy in OTHER_STRATEGIES,
        "it is not there, and ThresholdShedder takes its place",
        f"set {THRESHOLD_SHEDDER}, or leave it out",
    ),
    *(_certificate_in_the_clear(*each) for each in _PLACES_OF_A_CERTIFICATE),
    *(_no_certificate(kind) for kind, _ in _PLACES_OF_A_CERTIFICATE),
    _Rule(
        ("forceReadOnlyBookie",),
        lambda is_read_only: is_read_only,
        "the one bookie of a standalone takes no writes, so no topic could be written",
        "set forceReadOnlyBookie=false, or leave it out",
        ends_start=True,
        only_for=STANDALONE,
    ),
    _Rule(
        ("bookiePort", "httpServerPort", "httpServerEnabled"),
        lambda binary, web, enabled: enabled and _is_same_port(binary, web),
        "both would listen on one port",
        "set bookiePort and httpServerPort apart",
        ends_start=True,
    ),
)
