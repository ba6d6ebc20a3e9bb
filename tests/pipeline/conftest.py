"""Shared fixtures of the tests on Spark: one local session and one standalone, begun with the first test that wants them.

Both are of the whole run, as each costs seconds; a test has topics of its own (`topic`).
"""

import itertools
from collections.abc import Iterator

import pytest

from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.spark_process import SparkProcess, missing

SETTINGS = (
    "transactionCoordinatorEnabled=true",
    "brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    "exposingBrokerEntryMetadataToClientEnabled=true",
    "brokerDeleteInactiveTopicsEnabled=false",  # a slow machine may need longer for a query than a topic without readers lives
    "defaultRetentionTimeInMinutes=-1",
    "defaultRetentionSizeInMB=-1",
)
_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first query of a session takes twenty seconds of a quiet machine."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """`spark.run("module:function", ...)`; see spark_jobs. Skips where there is no Java."""
    if reason := missing():
        pytest.skip(reason)
    with SparkProcess(tmp_path_factory.mktemp("spark")) as process:
        yield process


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """With transactions, and with indexes of messages."""
    with ServerProcess(tmp_path_factory.mktemp("standalone"), SETTINGS) as server:
        yield server.start()


@pytest.fixture
def options(standalone: Ready) -> dict[str, str]:
    """Addresses of the standalone, as options of source and sink."""
    return {"service.url": standalone.broker_url, "admin.url": standalone.web_url}


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"persistent://public/default/t{next(_numbers)}"
