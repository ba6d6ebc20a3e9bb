"""Refusals of wrong requests, beside the answers of an Apache Pulsar 4.0.8 (`record_refusals`): status and reason."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.record_refusals import REQUESTS, SETUP

RECORDED = Path(__file__).with_name("apache-4.0.8-refusals.jsonl")
_SUBSCRIPTION = "there is no such subscription, and that is what is said (404)"
_BUNDLES = "what is no bundle is said so, of whatever form it is"
DIFFERENT: Mapping[str, str] = {
    'POST namespaces/refusals/none/permissions/r ["produce"]': "in the words of the other routes",
    "PUT namespaces/refusals/none/unload null": "in the words of the other routes",
    "GET persistent/refusals/n/x/internal-info null": "404 where Apache fails (500)",
    "GET persistent/refusals/n/t/subscription/none/position/1 null": _SUBSCRIPTION,
    "POST persistent/refusals/n/t/subscription/none/expireMessages/5 null": _SUBSCRIPTION,
    "GET persistent/refusals/n/t/subscription/none/properties null": _SUBSCRIPTION,
    "GET persistent/refusals/n/p/internalStats null": "405, and what to ask for instead",
    "PUT namespaces/refusals/n/0x00000000_0x12345678/unload null": _BUNDLES,
    "PUT namespaces/refusals/n/nonsense/unload null": _BUNDLES,
    "POST namespaces/refusals/n/0x00000000_0x12345678/clearBacklog null": _BUNDLES,
    'POST schemas/refusals/n/t/schema {"type": "AVRO", "schema": "no json", "properties": {}}': "the reason is given",
    'POST schemas/refusals/n/t/schema {"type": "NOPE", "schema": "", "properties": {}}': "422 where Apache fails (500)",
}
"""Differences of our answers, by `METHOD path body`. The status differs only where Apache's is of no use to the caller."""


def recorded() -> Iterator[tuple[str, str, Any, int, str | None]]:
    for line in RECORDED.read_text().splitlines():
        method, path, body, status, reason = json.loads(line)
        yield method, path, body, status, reason


def test_all_that_is_asked_was_asked_of_apache() -> None:
    assert [each[:3] for each in recorded()] == [*map(tuple, REQUESTS)]


def test_refusals_are_apaches_but_for_the_listed_differences() -> None:
    found: dict[str, Any] = {}

    async def scenario(world: AdminWorld) -> None:
        for method, path, body in SETUP:
            assert (await world.call(method, f"/admin/v2/{path}", body)).status == 204, path
        for method, path, body, status, reason in recorded():
            answer = await world.call(method, f"/admin/v2/{path}", body)
            ours = answer.status, answer.json["reason"] if answer.status >= 400 else None
            if ours != (status, reason):
                found[f"{method} {path} {json.dumps(body)}"] = (status, reason), ours

    play(scenario)
    assert {what: each for what, each in found.items() if what not in DIFFERENT} == {}
    assert DIFFERENT.keys() - found.keys() == set()
