"""The keys that people tune: each takes effect, means nothing here, or is refused. The code reads every field of settings."""

import asyncio
import dataclasses
import re
from pathlib import Path

import pytest

from bookkeeper.settings import BookKeeperSettings
from broker.dispatchers.settings import DispatcherSettings
from broker.policies.defaults import broker_defaults
from broker.policies.policies import DispatchRate, InactiveMode, InactiveTopicPolicy, PublishRate, QuotaType
from broker.policies.topic_settings import TopicSettings
from broker.service.load.settings import LoadSettings
from cli.autorecovery.server import SETTINGS as AUTORECOVERY
from cli.bookie.server import SETTINGS as BOOKIE_SETTINGS
from cli.broker.parts import BrokerParts
from cli.broker.server import SETTINGS as BROKER_SETTINGS
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import BOOKIE, BROKER, Verdict, effective_keys, judge
from cli.proxy.server import SETTINGS as PROXY_SETTINGS
from cli.standalone.server import SETTINGS as STANDALONE_SETTINGS
from managed_ledger.append.rollover import RolloverLimits, rollover_limits
from managed_ledger.settings import ManagedLedgerSettings
from metadata.memory import MemoryStore
from ports.clock import RealClock
from ports.rng import RealRng
from ports.settings import BadSetting, fold
from tests.started_process import ROOT
from wire.bookie.digests import DigestType

FILE = Path(__file__).parents[1] / "apache" / "tuned-keys.txt"
REFUSED = {
    "bindAddresses", "internalListenerName", "haProxyProtocolEnabled",  # one address a port
    "entryFilterNames", "functionsWorkerEnabled",  # Java's classes, other servers
    "managedLedgerOffloadDriver",
    "loadManagerClassName", "loadBalancerLoadPlacementStrategy",
    "compactionRateByEntries", "isThrottleByBytes", "journalFormatVersionToWrite", "journalWriteData", "listeningInterface",
    "ledgerStorageClass",
}  # fmt: skip
"""With values that they do not accept (`config explain KEY` says which, and why)."""
SAME_EITHER_WAY = {"expose_precise_backlog_in_prometheus"}
"""Settings that no code reads: the behaviour is the same with either value."""


def tuned() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in FILE.read_text().splitlines():
        if text.startswith("["):
            keys = found.setdefault(text.strip("[]"), [])
        elif text and not text.startswith("#"):
            keys.append(text)
    return found


def test_the_refused_tuned_keys_are_the_known_ones() -> None:
    broker = frozenset().union(effective_keys(BROKER_SETTINGS), effective_keys(STANDALONE_SETTINGS))
    bookie = effective_keys((*BOOKIE_SETTINGS, *AUTORECOVERY))
    verdicts = {key: judge(key, "another", BROKER, broker) for key in tuned()["broker"]}
    verdicts |= {key: judge(key, "another", BOOKIE, bookie) for key in tuned()["bookkeeper"]}
    assert {key for key, judged in verdicts.items() if judged.verdict is Verdict.REFUSED} == REFUSED
    assert [key for key, judged in verdicts.items() if judged.verdict is not Verdict.IN_EFFECT and not judged.reason] == []
    assert (len(tuned()["broker"]), len(tuned()["bookkeeper"])) == (228, 86)


def test_no_setting_is_read_by_nobody() -> None:
    layers = ("handlers", "broker", "managed_ledger", "bookkeeper", "bookie", "cli", "metadata", "ports")
    code = "\n".join(path.read_text() for layer in layers for path in (ROOT / layer).rglob("*.py"))
    attributes = set(re.findall(r"\.(\w+)", code))
    classes = {*BROKER_SETTINGS, *STANDALONE_SETTINGS, *BOOKIE_SETTINGS, *AUTORECOVERY, *PROXY_SETTINGS}
    fields = {field.name for cls in classes for field in dataclasses.fields(cls)}
    assert fields - attributes == SAME_EITHER_WAY


def configured(text: str) -> Configuration:
    return load_configuration([("broker.conf", text)], [])


def test_defaults_of_topics_policies_come_from_their_keys() -> None:
    configuration = configured(
        "ttlDurationDefaultInSeconds=11\ndefaultRetentionTimeInMinutes=12\ndefaultRetentionSizeInMB=13\n"
        "backlogQuotaDefaultLimitBytes=14\nbacklogQuotaDefaultLimitSecond=15\n"
        "backlogQuotaDefaultRetentionPolicy=consumer_backlog_eviction\n"
        "maxPublishRatePerTopicInMessages=16\nmaxPublishRatePerTopicInBytes=17\n"
        "dispatchThrottlingRatePerTopicInMsg=18\ndispatchThrottlingRatePerTopicInByte=19\n"
        "dispatchThrottlingRatePerSubscriptionInMsg=20\ndispatchThrottlingRatePerSubscriptionInByte=21\n"
        "subscribeThrottlingRatePerConsumer=22\nmaxProducersPerTopic=23\nmaxConsumersPerTopic=24\nmaxSubscriptionsPerTopic=25\n"
        "maxConsumersPerSubscription=26\nmaxUnackedMessagesPerConsumer=27\nmaxUnackedMessagesPerSubscription=28\n"
        "subscriptionTypesEnabled=Shared\nencryptionRequireOnProducer=true\nallowAutoSubscriptionCreation=false\n"
        "brokerDeleteInactiveTopicsEnabled=true\nbrokerDeleteInactiveTopicsMode=delete_when_subscriptions_caught_up\n"
        "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=29\nbrokerServiceCompactionThresholdInBytes=30\n"
        "subscriptionExpirationTimeMinutes=31\ndelayedDeliveryEnabled=false\ndelayedDeliveryTickTimeMillis=32\n"
        "delayedDeliveryMaxDelayInMillis=33\nbrokerDeduplicationEnabled=true\nbrokerDeduplicationSnapshotIntervalSeconds=34\n"
    )
    found = broker_defaults(configuration.settings(TopicSettings), configuration.settings(DispatcherSettings))
    assert found.message_ttl_seconds == 11
    assert (found.retention.minutes, found.retention.megabytes) == (12, 13)
    quota = found.quotas[QuotaType.DESTINATION_STORAGE]
    assert (quota.limit_bytes, quota.limit_seconds, quota.policy.value) == (14, 15, "consumer_backlog_eviction")
    assert found.publish_rate == PublishRate(16, 17)
    assert found.dispatch_rate == DispatchRate(18, 19)
    assert found.subscription_dispatch_rate == DispatchRate(20, 21)
    assert found.subscribe_rate is not None
    assert dataclasses.astuple(found.subscribe_rate)[0] == 22
    limits = (found.max_producers, found.max_consumers, found.max_subscriptions, found.max_consumers_per_subscription)
    assert limits == (23, 24, 25, 26)
    assert (found.max_unacked_per_consumer, found.max_unacked_per_subscription) == (27, 28)
    assert (found.subscription_types, found.encryption_required, found.auto_subscription_creation) == (("Shared",), True, False)
    assert found.inactive == InactiveTopicPolicy(True, InactiveMode.CAUGHT_UP, 29)
    assert (found.compaction_threshold_bytes, found.subscription_expiration_minutes) == (30, 31)
    delays = (found.delayed_delivery_enabled, found.delayed_delivery_tick_ms, found.delayed_delivery_max_delay_ms)
    assert delays == (False, 32, 33)
    assert (found.deduplication_enabled, found.deduplication_snapshot_seconds) == (True, 34)


def test_the_ledger_rollover_limits_come_from_their_keys() -> None:
    configuration = configured(
        "managedLedgerMaxEntriesPerLedger=5\nmanagedLedgerMaxSizePerLedgerMbytes=6\n"
        "managedLedgerMinLedgerRolloverTimeMinutes=7\nmanagedLedgerMaxLedgerRolloverTimeMinutes=8\n"
        "managedLedgerInactiveLedgerRolloverTimeSeconds=9\n"
    )
    assert rollover_limits(configuration.settings(ManagedLedgerSettings)) == RolloverLimits(5, 6 << 20, 420.0, 480.0, 9.0)


def test_the_bundle_split_and_broker_shedding_rules_come_from_their_keys() -> None:
    settings = configured(
        "loadBalancerNamespaceBundleMaxTopics=5\nloadBalancerNamespaceBundleMaxSessions=6\n"
        "loadBalancerNamespaceBundleMaxMsgRate=7\nloadBalancerNamespaceBundleMaxBandwidthMbytes=8\n"
        "loadBalancerNamespaceMaximumBundles=9\nloadBalancerBrokerThresholdShedderPercentage=20\n"
    ).settings(LoadSettings)
    assert dataclasses.astuple(settings.split_rule) == (5, 6, 7, 8, 9)
    assert dataclasses.astuple(settings.threshold_rule)[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "digest"),
    [("CRC32", DigestType.CRC32), ("MAC", DigestType.HMAC), ("CRC32C", DigestType.CRC32C), ("DUMMY", DigestType.DUMMY)],
)
def test_the_digest_of_ledgers_comes_from_its_key(name: str, digest: DigestType) -> None:
    assert configured(f"managedLedgerDigestType={name}").settings(BookKeeperSettings).digest_type is digest


def test_the_bookie_quarantine_rule_comes_from_its_keys() -> None:
    assert configured("bookkeeperClientHealthCheckEnabled=false").settings(BookKeeperSettings).quarantine_rule is None
    rule = configured(
        "bookkeeperClientHealthCheckErrorThresholdPerInterval=5\nbookkeeperClientHealthCheckIntervalSeconds=6\n"
        "bookkeeperClientHealthCheckQuarantineTimeInSeconds=7\nbookkeeperClientQuarantineRatio=0.5\n"
    ).settings(BookKeeperSettings)
    assert rule.quarantine_rule is not None
    assert dataclasses.astuple(rule.quarantine_rule) == (5, 6, 7, 0.5)


def test_each_tuned_key_is_one_of_apaches() -> None:
    known = {fold(key) for key in (ROOT / "conf" / "apache-broker-keys.txt").read_text().replace("=", " ").split()}
    assert [key for key in tuned()["broker"] if fold(key) not in known] == []


def test_transactions_without_topics_of_the_brokers_own_are_refused() -> None:
    async def made() -> None:
        clock = RealClock()
        configuration = configured("transactionCoordinatorEnabled=true\nsystemTopicEnabled=false\n")
        BrokerParts(configuration, {}, MemoryStore(clock), clock, RealRng())

    with pytest.raises(BadSetting, match="transactionCoordinatorEnabled=true needs systemTopicEnabled=true"):
        asyncio.run(made())
