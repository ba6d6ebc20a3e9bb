"""Plugin that pytest loads where Interpulse is installed: the fixtures `pulsar_broker` and `pulsar_broker_process`.

Owns the fixtures' scopes. Never imports more than pytest before a test asks for a broker: every test run loads this module.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from interpulse.testing.process import Broker

SETTINGS = "pulsar_broker_settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(SETTINGS, "settings of the broker of the fixture pulsar_broker, KEY=VALUE, one a line", type="linelist")


@pytest.fixture(scope="session")
def pulsar_broker_process(pytestconfig: pytest.Config) -> Iterator["Broker"]:
    """One broker for the whole run, started when the first test asks for it."""
    from interpulse.testing.process import broker

    settings = dict(_setting(line) for line in pytestconfig.getini(SETTINGS))
    with broker(settings) as started:
        yield started


@pytest.fixture
def pulsar_broker(pulsar_broker_process: "Broker", request: pytest.FixtureRequest) -> Iterator["Broker"]:
    """A Pulsar broker with a namespace for this test alone: `service_url`, `admin_url`, `namespace`, `topic(name)`."""
    with pulsar_broker_process.fresh_namespace(request.node.name) as fresh:
        yield fresh


def _setting(line: str) -> tuple[str, str]:
    key, equals, value = line.partition("=")
    if not equals:
        raise pytest.UsageError(f"{SETTINGS}: expected KEY=VALUE, found {line!r}")
    return key.strip(), value.strip()
