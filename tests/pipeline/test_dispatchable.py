"""Whether a broker has anything left to deliver, where it has no transactions, and where it is not there for a moment."""

import json
from contextlib import AbstractContextManager

import pytest

from pipeline.pyspark_pulsar.client.dispatchable import is_nothing_left
from pipeline.pyspark_pulsar.errors import Unreachable
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.positions import Place
from tests.http_server import QuietHandler, serving

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


def test_a_broker_without_transactions_keeps_nothing_back() -> None:
    """What it has not delivered is still to come: not to be asked again until the time is up, which ends the read."""
    with answering_503("This Broker is not configured with transactionCoordinatorEnabled=true.") as url:
        assert not looked_at(url)


def test_a_broker_that_is_not_ready_is_asked_again() -> None:
    with answering_503("The topic is being loaded") as url, pytest.raises(Unreachable, match="being loaded"):
        looked_at(url)
