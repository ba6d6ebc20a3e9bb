"""HTTP of a bookie in Apache's form; an operator's switches work."""

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from starlette.applications import Starlette

from bookie.upkeep.garbage import ROUND_SECONDS_MIN, GarbageCollector
from bookie.web.app import bookie_app
from bookie.web.requests import BODY_BYTES_MAX
from bookie.web.routes import MASK, BookieRoutes
from metadata.memory import MemoryStore
from tests.bookie.machines import SMALL, Machine, SimClock, on_machine
from tests.bookie.runs import KEY, sealed
from wire.bookie.codes import BookieCode, BookieError

CONFIGURED = {"bookiePort": "3181", "tlsKeyStorePassword": "hidden", "tlsTrustStorePassword": ""}
UNTHROTTLED = dataclasses.replace(SMALL, compaction_rate_by_bytes=0)


def node(ledger_id: int) -> str:
    return f"/ledgers/00/L{ledger_id:04d}"


class Site:
    """A bookie's HTTP, without a socket."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.store = MemoryStore(SimClock(machine.loop))
        self.app: Starlette

    async def start(self) -> None:
        bookie = await self.machine.start()
        self.collector = GarbageCollector(bookie, self.store, node, "/ledgers", SMALL.gc_wait_time / 1000)
        self.app = bookie_app(BookieRoutes(bookie, self.collector, "host:3181", CONFIGURED, lambda: 2))

    async def ask(self, path: str, body: bytes | None = None) -> tuple[int, str]:
        """GET, or PUT when there is a body: the status and the answer's text."""
        sent: list[Any] = []
        method = "GET" if body is None else "PUT"

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", "http_version": "1.1"}
        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]).decode()

    async def json(self, path: str, body: object = None) -> Any:
        status, text = await self.ask(path, None if body is None else json.dumps(body).encode())
        assert status == 200, text
        return json.loads(text)


async def mostly_dead(site: Site) -> None:
    """Three ledgers in the metadata; the first two have just been deleted there."""
    for ledger_id in (1, 2, 3):
        await site.store.put(node(ledger_id), b"")
    for entry_id in range(14):
        for ledger_id in (1, 2, 3):
            await site.machine.bookie.add(sealed(ledger_id, entry_id, 1, 40_000), KEY)
    await site.machine.bookie.flush()
    for ledger_id in (1, 2):
        await site.store.delete(node(ledger_id))


def test_heartbeat_and_readiness() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        assert await site.ask("/heartbeat") == (200, "OK\n")
        assert await site.ask("/api/v1/bookie/is_ready") == (200, "")
        assert (await site.ask("/nothing"))[0] == 404
        assert (await site.ask("/heartbeat", b"x"))[0] == 405

    on_machine(scenario)


def test_a_bookie_shows_its_state_its_disks_and_its_settings() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        state = {"running": True, "readOnly": False, "shuttingDown": False, "availableForHighPriorityWrites": True}
        assert await site.json("/api/v1/bookie/state") == state
        info = await site.json("/api/v1/bookie/info")
        assert 0 < info["freeSpace"] <= info["totalSpace"]
        shown = {**CONFIGURED, "tlsKeyStorePassword": MASK}
        assert await site.json("/api/v1/config/server_config") == shown

    on_machine(scenario)


def test_an_operator_makes_it_read_only_and_writable_again() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        path = "/api/v1/bookie/state/readonly"
        assert await site.json(path) == {"readOnly": False}
        assert await site.json(path, {"readOnly": True}) == {"readOnly": True}
        with pytest.raises(BookieError) as caught:
            await machine.bookie.add(sealed(1, 0), KEY)
        assert caught.value.code is BookieCode.EREADONLY
        assert (await site.json("/api/v1/bookie/state"))["readOnly"] is True
        assert await site.json(path, {"readOnly": False}) == {"readOnly": False}
        await machine.bookie.add(sealed(1, 0), KEY)

    on_machine(scenario)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"readOnly": 1}', b"[" * 30_000, b" " * (BODY_BYTES_MAX + 1)])
def test_a_body_that_is_not_what_the_path_takes_is_a_bad_request(body: bytes) -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        for path in ("state/readonly", "gc/suspend_compaction", "gc/resume_compaction"):
            status, text = await site.ask(f"/api/v1/bookie/{path}", body)
            assert (status, bool(text)) == (400, True)
        assert machine.bookie.read_only_reason == ""

    on_machine(scenario)


def test_a_collection_that_is_triggered_runs_at_once_and_deletes_after_two_rounds_only() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        await mostly_dead(site)
        run = machine.loop.create_task(site.collector.run())
        await asyncio.sleep(ROUND_SECONDS_MIN + 1)
        path = "/api/v1/bookie/gc"
        assert "Triggered GC" in await site.json(path, {})
        assert await site.json(path) == {"is_in_force_gc": "true"}
        await asyncio.sleep(1)
        assert await site.json(path) == {"is_in_force_gc": "false"}
        await site.json(path, {"forceMinor": True})  # too soon after the first to prove anything with it
        await asyncio.sleep(1)
        assert machine.bookie.ledger_ids() == [1, 2, 3]
        await asyncio.sleep(ROUND_SECONDS_MIN)
        await site.json(path, {"forceMajor": True})
        await asyncio.sleep(5)
        assert machine.bookie.ledger_ids() == [3]
        assert machine.bookie.compactor.counts.logs_compacted > 0
        (details,) = await site.json("/api/v1/bookie/gc_details")
        assert (details["majorCompactionCounter"], details["minorCompactionCounter"]) == (2, 1)
        assert details["lastMajorCompactionTime"] > 1_600_000_000_000
        run.cancel()

    on_machine(scenario, settings=UNTHROTTLED)


def test_an_operator_suspends_compaction_and_resumes_it() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()
        await mostly_dead(site)
        await machine.bookie.delete([1, 2])
        suspend = "/api/v1/bookie/gc/suspend_compaction"
        await site.json(suspend, {"suspendMajor": True})
        assert await site.json(suspend) == {"isMajorGcSuspended": "true", "isMinorGcSuspended": "false"}
        assert await machine.bookie.compactor.run("major") == 0
        await site.json("/api/v1/bookie/gc/resume_compaction", {"resumeMajor": True})
        assert await machine.bookie.compactor.run("major") > 0

    on_machine(scenario, settings=UNTHROTTLED)


def test_metrics_are_prometheus_text_and_follow_what_happens() -> None:
    async def scenario(machine: Machine) -> None:
        site = Site(machine)
        await site.start()

        async def values() -> dict[str, float]:
            status, text = await site.ask("/metrics")
            assert status == 200
            lines = [line for line in text.splitlines() if not line.startswith("# ")]
            assert len({line.split()[0] for line in lines}) == len(lines)
            return {line.split()[0]: float(line.split()[1]) for line in lines}

        before = await values()
        assert (before["bookie_SERVER_STATUS"], before["bookie_ledgers_count"]) == (1, 0)
        assert before["bookkeeper_server_ACTIVE_CONNECTIONS"] == 2
        await mostly_dead(site)
        await machine.bookie.delete([1, 2])
        await machine.bookie.compactor.run("major")
        await site.json("/api/v1/bookie/state/readonly", {"readOnly": True})
        after = await values()
        assert (after["bookie_SERVER_STATUS"], after["bookie_ledgers_count"]) == (0, 1)
        assert after["bookie_journal_JOURNAL_WRITE_BYTES"] > 14 * 3 * 40_000
        assert after["bookie_gc_COMPACTED_ENTRY_LOG_COUNT"] > 0

    on_machine(scenario, settings=UNTHROTTLED)
