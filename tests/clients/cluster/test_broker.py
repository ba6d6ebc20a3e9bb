"""A broker on a real ZooKeeper and three bookies, with Apache's Python client, and what it does not start on."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import names, publish, quiet_client, receive
from tests.started_process import DidNotStart

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]


@pytest.fixture
def broker(tmp_path: Path, storage: str) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker", storage) as process:
        yield process.start()
        process.stop()  # as it should: one that was killed is registered until its session ends


def test_kill_nine_of_the_broker_loses_nothing_and_the_cursor_goes_on(broker: BrokerProcess, topic: str) -> None:
    client = quiet_client(broker.ready.broker_url)
    try:
        consumer = client.subscribe(topic, "s")
        publish(client, topic, 50)
        assert receive(consumer, 20) == names(0, 20)
        broker.kill()
        broker.start()
        publish(client, topic, 20, first=50)
        got: list[str] = []
        while "m69" not in got:
            got += receive(consumer, 1)
        assert list(dict.fromkeys(got))[-50:] == names(20, 50)
    finally:
        client.close()
    assert broker.stop() == 0, broker.log.read_text()


def test_a_broker_is_registered_as_apaches_are(broker: BrokerProcess) -> None:
    with urllib.request.urlopen(broker.ready.web_url + "/admin/v2/brokers/test", timeout=10) as answer:
        assert json.loads(answer.read()) == [broker.ready.web_url.removeprefix("http://")]


def test_a_broker_does_not_start_where_it_must_not(tmp_path: Path, storage: str, broker: BrokerProcess) -> None:
    taken, taken_web = (url.rsplit(":", 1)[1] for url in (broker.ready.broker_url, broker.ready.web_url))
    refused = {
        "clusterName=other": "clusterName=other: the metadata has test",
        "metadataStoreUrl=": "metadataStoreUrl is not set",
        "managedLedgerDefaultEnsembleSize=4": "3 bookies are registered",
        f"brokerServicePort={taken}": r"stop what listens there .*or set brokerServicePort",
        f"webServicePort={taken_web}": f"the web server cannot listen on 127.0.0.1:{taken_web}.*or set .*webServicePort",
    }
    for setting, reason in refused.items():
        with pytest.raises(DidNotStart, match=reason):
            BrokerProcess(tmp_path / "refused", storage, setting).start()
    with pytest.raises(DidNotStart, match="is it running there"):
        BrokerProcess(tmp_path / "alone", "127.0.0.1:1", "metadataStoreOperationTimeoutSeconds=1").start()
