"""Apache's PrometheusMetricsProvider: a bookie without HTTP tells its metrics at prometheusStatsHttpPort, and nothing else."""

import re
import urllib.error
import urllib.request

import pytest

from bookie.web.settings import PROMETHEUS, BookieWebSettings
from tests.cli.bookkeeper_shell.shell_cluster import Cluster


def test_a_bookie_without_http_serves_its_metrics(cluster: Cluster) -> None:
    url = f"http://127.0.0.1:{cluster.metrics_port}"
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    assert "bookie_SERVER_STATUS 1\n" in text
    assert re.search(r"^bookie_ledger_dir__\w+_usage [0-9.]+$", text, re.MULTILINE)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(f"{url}/api/v1/bookie/state", timeout=30)
    refusal.value.close()
    assert refusal.value.code == 404


@pytest.mark.parametrize(
    ("settings", "serves"),
    [
        (BookieWebSettings(), False),
        (BookieWebSettings(stats_provider_class=PROMETHEUS), True),
        (BookieWebSettings(stats_provider_class=PROMETHEUS, prometheus_stats_http_enable=False), False),
        (BookieWebSettings(stats_provider_class=PROMETHEUS, http_server_enabled=True), False),
    ],
)
def test_the_port_is_there_as_bookkeeper_decides(settings: BookieWebSettings, serves: bool) -> None:
    assert settings.serves_metrics_alone == serves


def test_another_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="statsProviderClass=Codahale: "):
        BookieWebSettings(stats_provider_class="Codahale")
