"""Whether a broker has anything left to deliver: without transactions, with an open one, and while it is not there."""

import json
from contextlib import AbstractContextManager

import pytest

from pipeline.pyspark_pulsar.client import dispatchable
from pipeline.pyspark_pulsar.client.dispatchable import is_nothing_left
from pipeline.pyspark_pulsar.errors import Refused, Unreachable
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.positions import Place
from tests.clients.server_process import Ready
from tests.clients.transactional_peer import TransactionalPeer
from tests.http_server import QuietHandler, serving
from tests.pipeline.written_topics import values
from wire.transactions import TxnAction, TxnId

TOPIC = "persistent://public/default/t"


def answering_503(reason: str) -> AbstractContextManager[str]:
    """The URL of an admin REST that says so to everything."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = json.dumps({"reason": reason}).encode()
            self.send_response(503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return serving(Handler)


def looked_at(admin_url: str) -> bool:
    return is_nothing_left(TOPIC, Place(1, 0), Place(1, 9), Access("pulsar://unused", admin_url, timeout_seconds=0.5))


@pytest.mark.parametrize(("newest", "is_nothing"), [(Place(0, 7), True), (Place(1, 0), False), (Place(1, 4), False)])
def test_a_broker_without_transactions_has_nothing_left_behind_its_last_message(
    newest: Place, is_nothing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markers come after the last message. Messages before it are still to come."""
    monkeypatch.setattr(dispatchable, "_last_message", lambda *_: newest)
    with answering_503("This Broker is not configured with transactionCoordinatorEnabled=true.") as url:
        assert looked_at(url) == is_nothing


def test_a_broker_that_does_not_tell_of_its_transactions_may_keep_something_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatchable, "asked", refused)
    assert not looked_at("http://unused")


def refused(*_: object) -> None:
    raise Refused("not allowed")


def test_a_broker_that_is_not_ready_is_asked_again() -> None:
    with answering_503("The topic is being loaded") as url, pytest.raises(Unreachable, match="being loaded"):
        looked_at(url)


@pytest.mark.clients
def test_a_read_that_waits_for_an_open_transaction_says_so(standalone: Ready, topic: str) -> None:
    txn_id = TxnId(0, 1 << 40)
    with TransactionalPeer(standalone.broker_url, topic) as peer:
        peer.publish("before")
        peer.publish("in it", txn_id)
        with pytest.raises(Unreachable, match=r"a transaction that is open holds back what is behind (\d+):0\. .*=\1:1$"):
            values(standalone, topic, seconds=0.5)
        peer.end(txn_id, TxnAction.ABORT)
    assert values(standalone, topic) == ["before"]
