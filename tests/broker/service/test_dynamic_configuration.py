"""Dynamic settings: stored as Apache does, in force on every broker, and the file's value again when they are removed."""

import asyncio
import json
import re

import pytest

from broker.policies.topic_settings import TopicSettings
from broker.service.dynamic_configuration import PATH, BadDynamicValue, DynamicConfiguration, NotDynamic
from broker.service.settings import BrokerSettings
from cli.broker.parts import BROKER_SETTINGS
from cli.configuration.changes import ChangingSettings
from cli.configuration.keys import apache_broker_keys
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import BROKER, Verdict, effective_keys, judge
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock
from ports.settings import MASK, BadSetting
from tests.simulation.worlds import World, run

CLASSES = (BrokerSettings, TopicSettings)


class Broker:
    def __init__(self, shared: SharedTree, file: str = "") -> None:
        self.store = MemoryStore(RealClock(), shared, alone=False)
        self.configuration: Configuration = load_configuration([("broker.conf", file)], [])
        self.settings = self.configuration.settings(BrokerSettings)
        self.topic_settings = self.configuration.settings(TopicSettings)
        self.dynamic = DynamicConfiguration(self.store, ChangingSettings(self.configuration, CLASSES))

    async def close(self) -> None:
        self.dynamic.close()
        await self.store.close()


def test_a_change_is_stored_as_apache_stores_it_and_is_in_force_on_every_broker_at_once() -> None:
    async def scenario(_: World) -> None:
        shared = SharedTree()
        one, two = Broker(shared), Broker(shared)
        await one.dynamic.start()
        await two.dynamic.start()
        held = one.settings
        await one.dynamic.change("defaultNumPartitions", "7")
        await asyncio.sleep(1)
        assert (held.default_num_partitions, two.settings.default_num_partitions) == (7, 7)
        stored = await one.store.get(PATH)
        assert stored is not None
        assert json.loads(stored.value) == {"defaultNumPartitions": "7"}
        assert await two.dynamic.all() == {"defaultNumPartitions": "7"}
        assert two.dynamic.runtime()["defaultNumPartitions"] == "7"
        await one.close()
        await two.close()

    run(scenario)


def test_a_removed_dynamic_setting_has_the_value_of_the_file_again() -> None:
    async def scenario(_: World) -> None:
        broker = Broker(SharedTree(), "defaultNumPartitions=3")
        await broker.dynamic.start()
        await broker.dynamic.change("defaultNumPartitions", "7")
        await broker.dynamic.change("allowAutoTopicCreation", "false")
        await broker.dynamic.remove("defaultNumPartitions")
        await broker.dynamic.remove("defaultNumPartitions")
        assert (broker.settings.default_num_partitions, broker.settings.allow_auto_topic_creation) == (3, False)
        await broker.close()

    run(scenario)


def test_a_broker_that_starts_later_has_what_was_changed_before() -> None:
    async def scenario(_: World) -> None:
        shared = SharedTree()
        one, two = Broker(shared), Broker(shared)
        await one.dynamic.start()
        await one.dynamic.change("defaultNumPartitions", "7")
        await two.dynamic.start()
        assert two.settings.default_num_partitions == 7
        await one.close()
        await two.close()

    run(scenario)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("defaultNumPartitions", "many", "defaultNumPartitions=many: expected a whole number"),
        ("defaultNumPartitions", "-1", "defaultNumPartitions: expected at least 1"),
        ("managedLedgerCacheSizeMB", "100", "is read when a broker starts"),
        ("dispatchThrottlingOnNonBacklogConsumerEnabled", "false", "a dispatch rate holds for every subscription"),
        ("topicNameCacheMaxCapacity", "5", "topicNameCacheMaxCapacity=5 would have no effect: the memory it bounds is bounded"),
    ],
)
def test_a_value_that_could_not_be_in_force_is_refused_and_not_stored(key: str, value: str, why: str) -> None:
    async def scenario(_: World) -> None:
        broker = Broker(SharedTree())
        await broker.dynamic.start()
        with pytest.raises(BadDynamicValue, match=why):
            await broker.dynamic.change(key, value)
        assert await broker.dynamic.all() == {}
        await broker.close()

    run(scenario)


@pytest.mark.parametrize("key", [key.name for key in apache_broker_keys().values() if key.dynamic])
def test_no_key_is_stored_that_neither_takes_effect_nor_says_what_is_the_case_anyway(key: str) -> None:
    """With a value that is none of Apache's default."""
    settings = ChangingSettings(load_configuration([], []), BROKER_SETTINGS)
    judged = judge(key, "77", BROKER, effective_keys(BROKER_SETTINGS))
    if judged.verdict is not Verdict.IN_EFFECT:
        with pytest.raises(BadSetting, match=re.escape(judged.reason)):
            settings.check({key: "77"})
        settings.check({key: apache_broker_keys()[key].default})


def test_a_key_that_is_not_dynamic_is_refused_in_apaches_words() -> None:
    async def scenario(_: World) -> None:
        broker = Broker(SharedTree())
        for key in ("maxMessageSize", "noSuchKey"):
            with pytest.raises(NotDynamic, match="Can't update non-dynamic configuration"):
                await broker.dynamic.change(key, "1")
            with pytest.raises(NotDynamic, match="Can't delete non-dynamic configuration"):
                await broker.dynamic.remove(key)
        await broker.close()

    run(scenario)


def test_invalid_values_stored_by_an_apache_broker_do_not_block_the_valid_ones() -> None:
    async def scenario(_: World) -> None:
        broker = Broker(SharedTree())
        values = {
            "defaultNumPartitions": "abc",
            "maxTopicsPerNamespace": "5",
            "noSuchKey": "1",
            "allowAutoTopicCreation": False,
        }
        await broker.store.put(PATH, json.dumps(values).encode())
        await broker.dynamic.start()
        assert (broker.settings.default_num_partitions, broker.settings.max_topics_per_namespace) == (1, 5)
        assert not broker.settings.allow_auto_topic_creation
        await broker.close()

    run(scenario)


def test_two_brokers_that_change_different_keys_at_once_both_succeed() -> None:
    async def scenario(_: World) -> None:
        shared = SharedTree()
        one, two = Broker(shared), Broker(shared)
        await asyncio.gather(one.dynamic.change("defaultNumPartitions", "7"), two.dynamic.change("maxTopicsPerNamespace", "5"))
        assert await one.dynamic.all() == {"defaultNumPartitions": "7", "maxTopicsPerNamespace": "5"}
        await one.close()
        await two.close()

    run(scenario)


def test_the_runtime_values_are_those_in_force_and_secrets_are_masked() -> None:
    file = "brokerClientAuthenticationParameters=token:canary\ntlsKeyStorePassword=canary\nmaxTopicsPerNamespace=9"
    broker = ChangingSettings(load_configuration([("broker.conf", file)], []), CLASSES)
    shown = broker.in_effect()
    assert len(shown) == 568
    assert shown["maxTopicsPerNamespace"] == "9"
    assert shown["subscriptionTypesEnabled"] == "Exclusive,Shared,Failover,Key_Shared"
    assert shown["brokerClientAuthenticationParameters"] == shown["tlsKeyStorePassword"] == MASK
    assert "canary" not in str(shown)
