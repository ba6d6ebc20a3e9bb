"""HTTP of a bookie about its files, without secrets, and about the cluster."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from starlette.applications import Starlette

from bookie.web.app import bookie_app
from bookie.web.cluster_port import ClusterRefused
from bookie.web.cluster_routes import DELAY_SECONDS_MAX, ENTRIES_BYTES_MAX, ENTRIES_PER_PAGE, LEDGERS_PER_PAGE, ClusterRoutes
from bookie.web.disk_routes import DiskRoutes
from bookie.web.routes import MASK, is_secret
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, sealed

Answer = tuple[int, str]


async def ask(app: Starlette, path: str, body: bytes | None = None, query: str = "", method: str = "") -> Answer:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    how = method or ("GET" if body is None else "PUT")
    scope = {"type": "http", "method": how, "path": path, "headers": [], "query_string": query.encode(), "http_version": "1.1"}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]).decode()


def test_marks_and_files_are_told_in_apaches_form() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        app = bookie_app(DiskRoutes(machine.disk, SMALL))
        await bookie.add(sealed(1, 0), KEY)
        await bookie.flush()
        status, text = await ask(app, "/api/v1/bookie/last_log_mark")
        ((key, value),) = json.loads(text).items()
        assert (status, key) == (200, "LastLogMark: Journal Id - 1(0000000000000001.journal)")
        assert int(value.removeprefix("Pos - ")) > 0
        files = json.loads((await ask(app, "/api/v1/bookie/list_disk_file"))[1])
        assert (files["entrylog files"], files["index files"]) == ("00000001.log\t", "00000001.index\t")
        assert files["journal files"].startswith("0000000000000001.journal\t")
        one = json.loads((await ask(app, "/api/v1/bookie/list_disk_file", query="file_type=index"))[1])
        assert one == {"index files": "00000001.index\t"}
        assert (await ask(app, "/api/v1/bookie/list_disk_file", query="file_type=x"))[0] == 400

    on_machine(scenario)


def test_what_means_nothing_here_says_so() -> None:
    async def scenario(machine: Machine) -> None:
        app = bookie_app(DiskRoutes(machine.disk, SMALL))
        status, text = await ask(app, "/api/v1/bookie/expand_storage", b"")
        assert (status, "another bookie" in text) == (501, True)
        path = "/api/v1/bookie/entry_location_compact"
        assert await ask(app, path) == (200, "{}")
        status, text = await ask(app, path, b'{"entryLocationRocksDBCompact": true}')
        assert (status, "there is no RocksDB" in text) == (200, True)
        assert (await ask(app, path, b""))[0] == 400

    on_machine(scenario)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("tlsKeyStorePassword", True),
        ("bookkeeper_clientSecret", True),
        ("authToken", True),
        ("tlsKeyStorePasswordPath", False),
        ("bookiePort", False),
    ],
)
def test_secrets_are_known_by_their_names(key: str, expected: bool) -> None:
    assert is_secret(key) == expected
    assert MASK not in key


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


def test_what_the_cluster_refuses_has_its_status_and_its_reason() -> None:
    cluster = MagicMock(ledger=AsyncMock(side_effect=ClusterRefused("ledger 5 is not there", 404)))
    assert answers(cluster, "ledger/metadata", query="ledger_id=5") == (404, "ledger 5 is not there")
    assert answers(cluster, "ledger/metadata", query="ledger_id=5", method="PUT")[0] == 405
