"""The settings of a broker's process as its dynamic configuration sees them: which keys change, and how a change gets there."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from cli.configuration.keys import apache_broker_keys
from cli.configuration.loading import Configuration
from cli.configuration.verdicts import BROKER, Verdict, effective_keys, judge, same_value, shown
from ports.settings import BadSetting, fold, setting_text, shown_value

AT_START_ONLY = frozenset(
    {
        "brokerClientAuthenticationParameters",
        "brokerClientAuthenticationPlugin",
        "brokerClientTlsEnabled",
        "bookkeeperUseV2WireProtocol",  # connections to bookies are made with one version of the protocol
        "defaultNumberOfNamespaceBundles",
        "dispatcherMaxRoundRobinBatchSize",
        "failureDomainsEnabled",
        "loadBalancerBrokerOverloadedThresholdPercentage",
        "managedLedgerCacheEvictionTimeThresholdMillis",
        "managedLedgerCacheEvictionWatermark",
        "managedLedgerCacheSizeMB",
        "managedLedgerInactiveLedgerRolloverTimeSeconds",
        "maxConcurrentTopicLoadRequest",
        "maxMessagePublishBufferSizeInMB",
        "maxNumPartitionsPerPartitionedTopic",
        "superUserRoles",
    }
)
"""Dynamic in Apache's brokers; here they are read when a broker starts: a change is refused, not stored for nothing."""


class ChangingSettings:
    """The port `DynamicSettings` (broker.service.dynamic_configuration) over a process's configuration."""

    def __init__(self, configuration: Configuration, classes: Sequence[type]) -> None:
        self._configuration = configuration
        self._classes = classes
        self._dynamic: Mapping[str, str] = {}

    @property
    def dynamic_names(self) -> Collection[str]:
        return [key.name for key in apache_broker_keys().values() if key.dynamic]

    def check(self, changed: Mapping[str, str]) -> None:
        for key in changed.keys() & AT_START_ONLY:
            raise BadSetting(f"{key} is read when a broker starts: set it in broker.conf and restart the brokers, one by one")
        effective = effective_keys(self._classes)
        for key, value in changed.items():
            self._check_verdict(key, value, effective)
        self._configuration.check(changed)

    def _check_verdict(self, key: str, value: str, effective: frozenset[str]) -> None:
        """Unlike in a file, a key that means nothing here is refused: an operator does not look in a log after a change.
        Its default may be given, as it may in a file."""
        judged = judge(key, value, BROKER, effective)
        if judged.verdict is Verdict.REFUSED:
            raise BadSetting(f"{shown(key, value)}: {judged.reason}")
        if judged.verdict is Verdict.WITHOUT_EFFECT and not same_value(value, apache_broker_keys()[key].default):
            raise BadSetting(f"{shown(key, value)} would have no effect: {judged.reason}")

    def apply(self, changed: Mapping[str, str]) -> None:
        self._configuration.change(changed)
        self._dynamic = changed

    def in_effect(self) -> Mapping[str, str]:
        fields = {fold(field.name): (cls, field.name) for cls in self._classes for field in dataclasses.fields(cls)}
        given = {**self._configuration.values, **self._dynamic}
        return {
            key.name: shown_value(key.name, self._value(key.name, key.default, fields, given))
            for key in apache_broker_keys().values()
        }

    def _value(self, key: str, default: str, fields: Mapping[str, tuple[type, str]], given: Mapping[str, str]) -> str:
        """Value of a key that nothing reads: the one that was set, or the default of Apache's broker."""
        found = fields.get(fold(key))
        if found is None:
            return given.get(key, default)
        cls, name = found
        return setting_text(getattr(self._configuration.settings(cls), name))
