"""Planning over very many topics: connections and round trips are counted by a server of a few lines."""

import json
import threading
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import pytest

from pipeline.pyspark_pulsar.client.admin import ledgers_of_all
from pipeline.pyspark_pulsar.errors import NoSuchTopic, Refused
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.plan import TASKS, Split, splits_of, tasks_of
from pipeline.pyspark_pulsar.positions import Ledger, LedgerRange
from tests.http_server import QuietHandler, serving

TOPICS = [f"persistent://public/default/t{number}" for number in range(1000)]


class Admin:
    """Admin REST that counts connections and requests."""

    def __init__(self) -> None:
        self.connections, self.asked = 0, Counter[str]()
        self.lock = threading.Lock()
        self.absent: set[str] = set()
        self.moved = ""


def served(admin: Admin) -> AbstractContextManager[str]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            with admin.lock:
                admin.connections += 1

        def do_GET(self) -> None:
            name = self.path.split("/")[-2]
            with admin.lock:
                admin.asked[name] += 1
            if admin.moved and not self.path.startswith("/there"):
                self.answer(307, {}, f"{admin.moved}/there{self.path}")
            elif name in admin.absent:
                self.answer(404, {"reason": "gone"})
            elif self.headers.get("Authorization") != "Bearer right":
                self.answer(401, {"reason": "who?"})
            else:
                ledger = {"ledgerId": int(name[1:]), "entries": 2, "size": 20}
                self.answer(200, {"ledgers": [ledger], "currentLedgerEntries": 2, "currentLedgerSize": 20, "cursors": {}})

        def answer(self, status: int, body: Any, location: str = "") -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(data)

    return serving(Handler)


def access(url: str, token: str = "token:right") -> Access:
    return Access("pulsar://unused", url, token, timeout_seconds=20)


def test_the_ledgers_of_a_thousand_topics_are_asked_for_over_a_few_connections() -> None:
    admin = Admin()
    with served(admin) as url:
        found = ledgers_of_all(TOPICS, access(url))
    assert list(found) == TOPICS
    assert [each[0].ledger_id for each in found.values()] == list(range(1000))
    assert set(admin.asked.values()) == {1}
    assert admin.connections <= 8


def test_brokers_that_have_the_topics_are_asked_over_connections_that_are_kept_too() -> None:
    here, there = Admin(), Admin()
    with served(there) as other, served(here) as url:
        here.moved = other
        assert list(ledgers_of_all(TOPICS[:200], access(url))) == TOPICS[:200]
    assert here.connections <= 8
    assert there.connections <= 8


def test_a_topic_that_went_meanwhile_is_left_out_or_named() -> None:
    admin = Admin()
    admin.absent = {"t7"}
    with served(admin) as url:
        assert list(ledgers_of_all(TOPICS[:20], access(url), skips_absent=True)) == TOPICS[:7] + TOPICS[8:20]
        with pytest.raises(NoSuchTopic, match="default/t7: there is no such topic"):
            ledgers_of_all(TOPICS[:20], access(url))


def test_a_wrong_token_is_refused_by_name_and_not_asked_again() -> None:
    admin = Admin()
    with served(admin) as url, pytest.raises(Refused, match=r"default/t0: .* answers 401"):
        ledgers_of_all(TOPICS[:1], access(url, "token:wrong"))
    assert admin.asked == {"t0": 1}


def test_small_topics_share_tasks_and_few_splits_do_not() -> None:
    splits = [
        split for number, topic in enumerate(TOPICS) for split in splits_of(topic, [LedgerRange(number, 0, 2, 20)], 1 << 20)
    ]
    tasks = tasks_of(splits, 1 << 20)
    assert [split for task in tasks for split in task] == splits
    assert len(tasks) == TASKS
    assert tasks_of(splits[:TASKS], 1 << 20) == [(split,) for split in splits[:TASKS]]
    assert tasks_of([], 1) == []


def test_tasks_are_bounded_by_bytes() -> None:
    splits = [Split(topic, (LedgerRange(1, 0, 1, 600),)) for topic in TOPICS]
    assert all(len(task) == 1 for task in tasks_of(splits, 1000))
    assert Ledger(1, 1, 1).closed_at_ms == 0
