"""A few seeds of the fuzz on a standalone in a process of its own; `python -m tests.fuzz` runs thousands."""

import asyncio
from pathlib import Path

import pytest

from tests.fuzz.admin_fuzz import AdminFuzz
from tests.fuzz.fuzz import fuzz, summary
from tests.fuzz.watched_server import WatchedServer

SEEDS = 8
SMALL = (
    "brokerDeduplicationEnabled=true",
    "managedLedgerMaxEntriesPerLedger=10",
    "managedLedgerMinLedgerRolloverTimeMinutes=0",
)


@pytest.mark.parametrize(("first", "settings"), [(0, ()), (SEEDS, SMALL)], ids=["as it is", "small ledgers"])
def test_fuzzed_client_bytes_are_answered_once_and_harm_no_other_client(
    tmp_path: Path, first: int, settings: tuple[str, ...]
) -> None:
    server = WatchedServer(tmp_path, settings)
    with server.process:
        report = asyncio.run(fuzz(server, server.start(), range(first, first + SEEDS)))
        assert server.process.stop() == 0
    assert report.findings == [], "\n".join(summary(report))
    assert server.said() == []
    assert report.seeds == SEEDS
    assert report.stored > 20
    assert report.bystander_messages > 20


def test_fuzzed_rest_requests_cause_no_server_failure(tmp_path: Path) -> None:
    server = WatchedServer(tmp_path)
    with server.process:
        host, _, web_port = server.start()
        report = AdminFuzz(host, web_port).run(range(1))
        assert server.process.stop() == 0
    assert report.findings + server.said() == []
    assert report.statuses[200] + report.statuses[204] > 30
