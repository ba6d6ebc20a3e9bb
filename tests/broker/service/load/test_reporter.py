"""Reports of load."""

import pytest

from broker.service.load.board import REPORTS, Report, decode_report, encode_report
from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats, Usage
from broker.topic.statistics.topic_stats import TopicTraffic
from metadata.store import MetadataError
from tests.broker.service.houses import a_cluster, play
from tests.broker.service.load.load_parts import FixedUsage, cut_of, reporter, with_topics


def test_a_broker_reports_what_its_bundles_do_and_again_when_that_has_changed() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await with_topics(house, TopicTraffic(10.0, 20.0, 1000.0, 2000.0, 1, 2))
            path, usage = f"{REPORTS}/{house.members.own_id}", FixedUsage()
            reporting = reporter(house, usage=usage)
            await reporting.look()
            found = await house.store.get(path)
            assert found is not None
            report = decode_report(found.value)
            assert report.load.total == BundleStats(240.0, 480.0, 24_000.0, 48_000.0, 24, 48, 24)
            assert set(report.load.bundles) == {str(bundle) for bundle in (await cut_of(house)).all()}
            assert report.histories.keys() == report.load.bundles.keys()
            await reporting.look()
            unchanged = await house.store.get(path)
            assert unchanged is not None
            assert unchanged.stat.version == found.stat.version, "nothing to tell"
            usage.cpu = 0.2
            await reporting.look()
            changed = await house.store.get(path)
            assert changed is not None
            assert changed.stat.version == found.stat.version + 1
            assert reporting.reported.usage.cpu == 0.2

    play(scenario)


def test_a_report_is_read_back_and_what_is_none_is_an_error() -> None:
    report = Report(BrokerLoad(Usage(0.5), {"t/n/r": BundleStats(1.0)}, 7), {"t/n/r": BundleHistory(topics=3)})
    assert decode_report(encode_report(report)) == report
    for value in (b"", b"{", b'{"bundleData":7}', b'{"bundleData":{"a":{}}}'):
        with pytest.raises(MetadataError):
            decode_report(value)
