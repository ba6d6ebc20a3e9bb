"""HTTP of a bookie about the cluster: pages, lists and refusals in Apache's form, and nothing done for a wrong request."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from bookie.web.app import bookie_app
from bookie.web.cluster_port import ClusterRefused
from bookie.web.cluster_routes import DELAY_SECONDS_MAX, ENTRIES_BYTES_MAX, ENTRIES_PER_PAGE, LEDGERS_PER_PAGE, ClusterRoutes
from tests.bookie.web.asking import Answer, ask


def answers(cluster: Any, path: str, body: bytes | None = None, query: str = "", method: str = "") -> Answer:
    return asyncio.run(ask(bookie_app(ClusterRoutes(cluster)), f"/api/v1/{path}", body, query, method))


def test_pages_are_cut_as_they_are_asked_for() -> None:
    cluster = MagicMock(ledgers=AsyncMock(return_value={}), entries=AsyncMock(return_value={"1000": "x"}))
    assert answers(cluster, "ledger/list", query="print_metadata=true&page=3") == (200, "{}")
    cluster.ledgers.assert_awaited_once_with(2 * LEDGERS_PER_PAGE, LEDGERS_PER_PAGE, has_metadata=True, decodes=False)
    answers(cluster, "ledger/read", query="ledger_id=7&page=2&start_entry_id=1500")
    cluster.entries.assert_awaited_once_with(7, 1500, 2 * ENTRIES_PER_PAGE - 1, ENTRIES_BYTES_MAX)


@pytest.mark.parametrize(
    ("lacking", "query", "expected"),
    [
        ([], "", (404, "No under replicated ledgers found")),
        ([(5, ("a:1",)), (6, ("b:2",))], "", (200, "[5,6]")),
        ([(5, ("a:1", "b:2"))], "printmissingreplica=", (200, '{"5":["a:1","b:2"]}')),
    ],
)
def test_ledgers_that_lack_copies_are_listed_as_apache_does(
    lacking: Sequence[tuple[int, Sequence[str]]], query: str, expected: Answer
) -> None:
    cluster = MagicMock(lacking=AsyncMock(return_value=lacking))
    path = "autorecovery/list_under_replicated_ledger"
    assert answers(cluster, path, query=f"missingreplica=a:1&excludingmissingreplica=c:3&{query}") == expected
    cluster.lacking.assert_awaited_once_with("a:1", "c:3")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("autorecovery/lost_bookie_recovery_delay", {}),
        ("autorecovery/lost_bookie_recovery_delay", {"delay_seconds": True}),
        ("autorecovery/lost_bookie_recovery_delay", {"delay_seconds": DELAY_SECONDS_MAX + 1}),
        ("autorecovery/bookie", {"bookie_src": "a:1"}),
        ("autorecovery/bookie", {"bookie_src": [1]}),
        ("autorecovery/decommission", {"bookie_src": ["a:1"]}),
    ],
)
def test_a_wrong_body_is_a_bad_request_and_does_nothing(path: str, body: Mapping[str, object]) -> None:
    cluster = MagicMock()
    status, text = answers(cluster, path, json.dumps(body).encode())
    assert (status, text.startswith("expected {")) == (400, True)
    assert cluster.method_calls == []


def test_a_refusal_of_the_cluster_has_its_status_and_its_reason() -> None:
    cluster = MagicMock(ledger=AsyncMock(side_effect=ClusterRefused("ledger 5 is not there", 404)))
    assert answers(cluster, "ledger/metadata", query="ledger_id=5") == (404, "ledger 5 is not there")
    assert answers(cluster, "ledger/metadata", query="ledger_id=5", method="PUT")[0] == 405


def test_a_page_that_the_bounds_leave_empty_is_a_bad_request() -> None:
    cluster = MagicMock()
    status, text = answers(cluster, "ledger/read", query="ledger_id=7&page=1&start_entry_id=1500")
    assert (status, "1500 is after 999" in text) == (400, True)
    assert cluster.method_calls == []


def test_entries_without_a_page_are_read_to_the_end_of_the_ledger() -> None:
    cluster = MagicMock(entries=AsyncMock(return_value={}))
    assert answers(cluster, "ledger/read", query="ledger_id=7") == (200, "{}")
    cluster.entries.assert_awaited_once_with(7, 0, None, ENTRIES_BYTES_MAX)


def test_autorecovery_is_switched_only_by_a_request_that_says_how() -> None:
    cluster = MagicMock(set_repaired=AsyncMock(), is_repaired=AsyncMock(return_value=False))
    assert answers(cluster, "autorecovery/status", method="PUT")[0] == 400
    cluster.set_repaired.assert_not_awaited()
    assert answers(cluster, "autorecovery/status", query="enabled=FALSE", method="PUT") == (200, '{"enabled":false}')
    cluster.set_repaired.assert_awaited_once_with(False)


def test_a_cluster_without_an_auditor_answers_404() -> None:
    cluster = MagicMock(auditor=AsyncMock(return_value=None))
    assert answers(cluster, "autorecovery/who_is_auditor") == (404, "No auditor elected")


def test_a_cookie_is_deleted_only_where_the_body_says_true() -> None:
    cluster = MagicMock()
    for said, deletes in ((True, True), (False, False), ("true", False), (1, False)):
        answers(cluster, "autorecovery/bookie", json.dumps({"bookie_src": ["a:1"], "delete_cookie": said}).encode())
        assert cluster.start_recovery.call_args.kwargs == {"deletes_cookie": deletes}
