"""Metrics beside those of topics: names, labels and buckets as Apache's, and values that can be checked."""

import asyncio
from collections.abc import Callable

import pytest

from broker.admin.metrics.operations import (
    authentication_text,
    metadata_text,
    moves_text,
    quotas_text,
    schemas_text,
    usage_text,
)
from broker.policies.policies import QuotaType
from broker.schema.values import SchemaData, SchemaRefused, SchemaType, Strategy
from broker.security.authentication.authentication import AuthenticationMeters
from broker.security.authentication.principals import AuthenticationRefused, Principal
from broker.service.load.leader import Moves
from broker.service.load.loads import Usage
from broker.service.topic_name import TopicName
from metadata.memory import MemoryStore, SharedTree
from metadata.metered_store import MeteredStore
from metadata.store import BadVersion, Delete, NoNode, Put
from ports.clock import RealClock
from ports.metrics.histogram import Histogram
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.admin.metrics.test_metrics import T, parsed, scrape

OPS = "pulsar_metadata_store_ops_latency_ms"


def test_a_histogram_counts_what_is_up_to_each_bound() -> None:
    histogram = Histogram((1.0, 5.0))
    for value in (0.5, 1.0, 1.1, 7.0):
        histogram.record(value)
    histogram.record(5.0, 2)
    assert (histogram.cumulative(), histogram.count, histogram.total) == ([2, 5, 6], 6, 19.6)


def test_a_metered_store_counts_by_kind_and_whether_it_went_well_and_changes_nothing() -> None:
    async def scenario() -> None:
        store = MeteredStore(MemoryStore(RealClock(), SharedTree()))
        await store.put("/a", b"123")
        await store.commit([Put("/b", b"12"), Put("/c", b""), Delete("/a")])
        with pytest.raises(BadVersion):
            await store.put("/b", b"12345", 77)
        with pytest.raises(NoNode):
            await store.delete("/a")
        found = await store.get("/b")
        assert found is not None
        assert found.value == b"12"
        assert (await store.get("/a"), await store.exists("/c"), await store.children("/")) == (None, True, ["b", "c"])
        told = parsed(metadata_text("c", store.meters))
        counts = {
            (kind, status): told[f'{OPS}_count{{cluster="c",name="metadata-store",type="{kind}",status="{status}"}}']
            for kind in ("get", "put", "del")
            for status in ("success", "fail")
        }
        assert list(counts.values()) == [2, 0, 3, 1, 1, 1]
        assert told[f'{OPS}_bucket{{cluster="c",name="metadata-store",type="get",status="success",le="5000.0"}}'] == 2
        assert told[f'{OPS}_bucket{{cluster="c",name="metadata-store",type="get",status="success",le="+Inf"}}'] == 2
        assert told['pulsar_metadata_store_put_bytes_total{cluster="c",name="metadata-store"}'] == 5
        await store.close()

    asyncio.run(scenario())


def test_schemas_are_counted_by_namespace_and_by_what_became_of_them() -> None:
    async def scenario(world: AdminWorld) -> None:
        registry, name = world.service.schemas.registry, "public/default/t"
        assert schemas_text("c", registry.meters) == ""
        text = SchemaData(SchemaType.STRING)
        await registry.put(name, text, Strategy.FULL)
        await registry.put(name, text, Strategy.FULL)
        with pytest.raises(SchemaRefused):
            await registry.put(name, SchemaData(SchemaType.INT32), Strategy.FULL)
        await registry.latest(name)
        await world.service.schemas.delete(TopicName.parse(f"persistent://{name}"), "me", force=False)
        told, label = await scrape(world), '{cluster="standalone",namespace="public/default"}'
        assert told[f"pulsar_schema_put_ops_latency_count{label}"] == 2
        assert told[f"pulsar_schema_put_ops_failed_total{label}"] == 1
        assert told[f"pulsar_schema_get_ops_latency_count{label}"] >= 1
        assert told[f"pulsar_schema_get_ops_failed_total{label}"] == 0
        assert told[f"pulsar_schema_del_ops_latency_count{label}"] == 1
        assert told[f"pulsar_schema_compatible_total{label}"] == 1
        assert told[f"pulsar_schema_incompatible_total{label}"] == 1

    play(scenario)


def test_authentications_are_counted_by_provider_and_refusals_by_reason() -> None:
    meters = AuthenticationMeters()
    meters.let_in(Principal("a", "tls"), 0.0)
    meters.let_in(Principal("a", "token", expires_at=1000.0 + 7 * 60), 1000.0)
    meters.refused("token", AuthenticationRefused("it has", "INVALID_TOKEN", is_expired=True))
    meters.refused("basic", AuthenticationRefused("no", "INVALID_AUTH_DATA"))
    told = parsed(authentication_text("c", meters))
    token = 'cluster="c",provider_name="AuthenticationProviderToken",auth_method="token"'
    assert told[f"pulsar_authentication_success_total{{{token}}}"] == 1
    assert told[f'pulsar_authentication_failures_total{{{token},reason="INVALID_TOKEN"}}'] == 1
    assert told['pulsar_expired_token_total{cluster="c"}'] == 1
    buckets = [told[f'pulsar_expiring_token_minutes_bucket{{cluster="c",le="{end}"}}'] for end in ("5.0", "10.0", "+Inf")]
    assert buckets == [0, 1, 1]
    assert told['pulsar_expiring_token_minutes_sum{cluster="c"}'] == 7


def test_load_balancing_has_the_names_of_both_of_apaches_load_managers() -> None:
    told = parsed(moves_text("c", Moves(bundles=5, brokers=2, failed=1), [0.25, 0.75]))
    of = 'cluster="c",metric="bundleUnloading"'
    for end in ("total", "count"):
        assert told[f"pulsar_lb_unload_broker_{end}{{{of}}}"] == 2
        assert told[f"pulsar_lb_unload_bundle_{end}{{{of}}}"] == 5
    assert told[f'pulsar_lb_unload_broker_breakdown_total{{{of},result="Failure"}}'] == 1
    assert told[f'pulsar_lb_resource_usage_stats{{{of},feature="max_ema",stat="avg"}}'] == 0.5
    assert told[f'pulsar_lb_resource_usage_stats{{{of},feature="max_ema",stat="std"}}'] == 0.25
    assert "usage_stats" not in moves_text("c", Moves(), [])
    used = parsed(usage_text("c", Usage(0.5, 0.25)))
    assert used['pulsar_lb_resource_usage{cluster="c",metric="loadBalancing",feature="max"}'] == 0.5


def test_splits_and_rounds_of_quotas_are_counted_where_they_happen() -> None:
    async def scenario(world: AdminWorld) -> None:
        path = "/admin/v2/namespaces/public/default/0x00000000_0x40000000/split"
        assert (await world.call("PUT", path)).status == 204
        assert (await world.call("PUT", path)).status == 412, "it is two bundles now"
        await world.service.housekeeping.check_quotas()
        told = await scrape(world)
        of = 'cluster="standalone",metric="bundlesSplit"'
        assert told[f"pulsar_lb_bundles_split_total{{{of}}}"] == told[f"pulsar_lb_bundles_split_count{{{of}}}"] == 1
        assert told[f'pulsar_lb_bundles_split_breakdown_total{{{of},result="Failure"}}'] == 1
        assert told['pulsar_storage_backlog_quota_check_duration_seconds_count{cluster="standalone"}'] == 1
        assert told['pulsar_broker_throttled_connections{cluster="standalone"}'] == 0

    play(scenario)


@pytest.mark.parametrize(("quota", "label"), [(QuotaType.DESTINATION_STORAGE, "size"), (QuotaType.MESSAGE_AGE, "time")])
def test_evictions_have_a_series_for_each_quota_from_the_first_on(quota: QuotaType, label: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(f"{NAME}/t")
        name = "pulsar_storage_backlog_quota_exceeded_evictions_total"
        assert not any(key.startswith(f"{name}{{") for key in await scrape(world))
        topic.upkeep.quotas.evictions[quota] = 3
        told = await scrape(world)
        other: Callable[[str], str] = {"size": "time", "time": "size"}.__getitem__
        assert told[f'{name}{{{T},quota_type="{label}"}}'] == 3
        assert told[f'{name}{{{T},quota_type="{other(label)}"}}'] == 0
        assert (
            told[f'pulsar_broker_storage_backlog_quota_exceeded_evictions_total{{cluster="standalone",quota_type="{label}"}}']
            == 3
        )
        assert told[f"pulsar_storage_backlog_age_seconds{{{T}}}"] == -1

    play(scenario)


def test_a_round_of_quotas_is_a_histogram_with_apaches_bounds() -> None:
    told = parsed(quotas_text("c", Histogram((5.0, 10.0)), (0, 2)))
    assert told['pulsar_broker_storage_backlog_quota_exceeded_evictions_total{cluster="c",quota_type="time"}'] == 2
    assert told['pulsar_storage_backlog_quota_check_duration_seconds_bucket{cluster="c",le="5.0"}'] == 0
