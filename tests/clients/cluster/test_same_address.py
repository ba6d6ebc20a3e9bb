"""Two brokers that say they have one address, on a real ZooKeeper: the second does not start, the first serves on."""

from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import names, publish, quiet_client
from tests.started_process import DidNotStart

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]


def test_a_second_broker_with_the_addresses_of_one_that_runs_is_refused(tmp_path: Path, storage: str, topic: str) -> None:
    with BrokerProcess(tmp_path / "first", storage) as first:
        first.start()
        ports = [
            f"{key}={url.rsplit(':', 1)[1]}"
            for key, url in (("brokerServicePort", first.ready.broker_url), ("webServicePort", first.ready.web_url))
        ]
        own = ("bindAddress=127.0.0.2", "advertisedAddress=127.0.0.1")
        with pytest.raises(DidNotStart, match="give this one its own advertisedAddress"):
            BrokerProcess(tmp_path / "second", storage, *ports, *own).start()
        client = quiet_client(first.ready.broker_url)
        try:
            publish(client, topic, len(names(0, 5)))
        finally:
            client.close()
        assert first.stop() == 0
