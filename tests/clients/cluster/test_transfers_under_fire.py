"""Transfers in transactions while brokers and bookies are killed: the books balance, and readers see all of one or nothing.

A short form of `benchmarks/cluster/transfers_under_fire.py`; `tests/clients/cluster/transfers/running.py` lists the checks.
"""

import shutil
from pathlib import Path

import pytest

from tests.clients.cluster.transfers.running import transfers_under_fire
from tests.metadata.zookeeper.zookeeper_server import need_zookeeper

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

KILLS = ("kill a broker", "kill a bookie", "kill a broker and a bookie")
AMID_MAX = 40
AWAY_MAX, AWAY_SECONDS_MAX = 60, 6.0
"""Longer than a session with ZooKeeper: the other broker takes over."""


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
def test_the_books_balance_when_brokers_and_bookies_are_killed_amid_transactions(tmp_path: Path) -> None:
    need_zookeeper()
    with transfers_under_fire(tmp_path, threads=4) as fire:
        for name in KILLS:
            fire.until_amid(AMID_MAX)
            fire.hit(name, AWAY_MAX, AWAY_SECONDS_MAX)
        fire.check()
        commands, committed, aborted, _, later = fire.program.books
    assert commands == committed + later
    assert commands > 0
    assert aborted > 0
