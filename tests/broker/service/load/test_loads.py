"""Load reports, their averages, and Apache's forms of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.service.catalogue.namespaces import to_json
from broker.service.load.loads import (
    BrokerLoad,
    BundleHistory,
    BundleStats,
    Mean,
    Usage,
    decode_history,
    decode_load,
    encode_history,
    load_fields,
)
from metadata.store import MetadataError

counts = st.integers(0, 1 << 40)
rates = st.integers(0, 1 << 40).map(float)
stats = st.builds(BundleStats, rates, rates, rates, rates, counts, counts, counts)
shares = st.integers(0, 100).map(lambda percent: percent / 100)
loads = st.builds(
    BrokerLoad,
    st.builds(Usage, shares, shares, shares, shares),
    st.dictionaries(st.text(min_size=1), stats, max_size=3),
    counts,
)


@given(loads)
def test_a_report_is_read_back(load: BrokerLoad) -> None:
    found = decode_load(to_json(load_fields(load)))
    assert (found.bundles, found.updated_ms) == (load.bundles, load.updated_ms)
    assert found.usage.greatest == pytest.approx(load.usage.greatest)


def test_a_report_of_apaches_broker_is_read() -> None:
    found = decode_load(
        b'{"cpu":{"usage":30.0,"limit":200.0},"memory":{"usage":100.0,"limit":400.0},"bandwidthIn":{"usage":5.0,"limit":0.0},'
        b'"lastUpdate":17,"lastStats":{"t/n/0x00000000_0x80000000":{"msgRateIn":3.5,"topics":2,"cacheSize":9}},"bundles":[]}'
    )
    assert found.usage == Usage(0.15, 0.25, 0.0, 0.0)
    assert found.bundles == {"t/n/0x00000000_0x80000000": BundleStats(msg_rate_in=3.5, topics=2)}
    assert found.updated_ms == 17


@pytest.mark.parametrize("value", [b"", b"[]", b'{"cpu":7}', b'{"lastStats":{"a":1}}', b'{"lastUpdate":"x"}'])
def test_a_report_that_is_none_is_an_error(value: bytes) -> None:
    with pytest.raises(MetadataError, match="load report"):
        decode_load(value)


@given(st.lists(stats, min_size=1, max_size=30))
def test_a_mean_is_that_of_the_reports_until_they_are_too_many(reports: list[BundleStats]) -> None:
    history = BundleHistory()
    for report in reports:
        history = history.after(report)
    assert history.long.samples == len(reports)
    assert history.long.msg_rate == pytest.approx(sum(report.msg_rate for report in reports) / len(reports), abs=1e-3)
    assert history.short.samples == min(10, len(reports))
    assert decode_history(encode_history(history)) == history


def test_an_old_mean_gives_way_slowly() -> None:
    mean = Mean(samples_max=10)
    for _ in range(50):
        mean = mean.after(BundleStats(msg_rate_in=100.0))
    assert mean.after(BundleStats(msg_rate_in=200.0)).msg_rate_in == pytest.approx(110.0)


@pytest.mark.parametrize("value", [b"", b"{}", b'{"shortTermData":{},"longTermData":{}}', b"[1]"])
def test_a_history_that_is_none_is_an_error(value: bytes) -> None:
    with pytest.raises(MetadataError, match="bundle"):
        decode_history(value)


def test_the_changed_share_of_a_load_is_its_relative_change() -> None:
    one = BrokerLoad(Usage(0.5), {"b": BundleStats(100.0, 0.0, 1000.0)})
    assert one.changed_share(one) == 0
    assert one.changed_share(BrokerLoad(Usage(0.55), one.bundles)) == pytest.approx(0.1)
    assert one.changed_share(BrokerLoad(Usage(0.5), {"b": BundleStats(150.0, 0.0, 1000.0)})) == pytest.approx(0.5)
    assert one.changed_share(BrokerLoad(Usage(0.5), {})) == 1
    assert BrokerLoad().changed_share(one) == 1
