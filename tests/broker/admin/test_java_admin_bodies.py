"""Bodies that Apache's admin for Java writes: each request is accepted, and its values are told again.

`java_admin_bodies.jsonl` is what `tests/clients/java_admin/Bodies.java` wrote with the client of Apache Pulsar 4.0.8: its names
of members are Jackson's, not always those of the documents (`excluded`).
"""

import json
from pathlib import Path
from typing import Any

from tests.broker.admin.admin_world import AdminWorld, Answer, play
from tests.broker.admin.routes.topics.test_cursors import filled
from tests.broker.topic.topic_world import payload
from wire.position import Position

REQUESTS = [json.loads(line) for line in Path(__file__).with_name("java_admin_bodies.jsonl").read_text().splitlines()]
ABSENT = {
    "PUT /admin/v2/persistent/public/default/t/offload",
    "POST /admin/v2/namespaces/public/default/replicatorDispatchRate",
    "PUT /admin/v2/namespaces/public/default/offloadThresholdInSeconds",
    "POST /admin/v2/persistent/public/default/t/replicatorDispatchRate",
}
"""501 whatever the body is: there is neither tiered storage nor replication between clusters."""
NOTHING_TO_EXPIRE = "POST /admin/v2/persistent/public/default/t/subscription/s/expireMessages"
"""409: the topic of this test is empty."""
TOLD_AS: dict[str, Any] = {
    "/admin/v2/namespaces/bodies/four": {"bundles": {"numBundles": 4}},
    "/admin/v2/namespaces/bodies/cut": {"bundles": {"boundaries": ["0x00000000", "0x30000000", "0xffffffff"]}},
    "/admin/v2/persistent/public/default/tp/partitions": {"properties": {"x": "y"}},
    "/admin/v2/schemas/public/default/tschema/schema": {"type": "JSON", "properties": {"a": "b"}},
}
"""Part of the body that GET tells, by path, where its form is another than what was put."""


async def send(world: AdminWorld, request: dict[str, str]) -> Answer:
    return await world.call(request["method"], request["path"], raw=request["body"].encode())


def has(told: Any, said: Any) -> bool:
    """Whether all that was said is told, maybe with more."""
    if isinstance(said, dict) and isinstance(told, dict):
        return all(name in told and has(told[name], value) for name, value in said.items())
    return bool(told == said)


def test_every_body_of_javas_admin_is_taken_and_what_it_set_is_told_again() -> None:
    async def scenario(world: AdminWorld) -> None:
        refused: dict[str, int] = {}
        for request in REQUESTS:
            path = request["path"].partition("?")[0]
            answer = await send(world, request)
            if answer.status >= 300:
                refused[f"{request['method']} {path}"] = answer.status
                continue
            said = TOLD_AS.get(path, json.loads(request["body"] or "null"))
            told = await world.get(path)
            assert told.status != 200 or said is None or has(json.loads(told.body), said), (path, told.body, said)
        assert refused == {**dict.fromkeys(ABSENT, 501), NOTHING_TO_EXPIRE: 409}

    play(scenario)


def test_a_cursor_is_reset_behind_the_message_that_javas_admin_excludes() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world, *[payload() for _ in range(10)])
        (reset,) = [request for request in REQUESTS if request["path"].endswith("/resetcursor")]
        assert (await send(world, reset)).status == 204
        assert topic.subscriptions.get("s").cursor.first_unacknowledged() == Position(3, 5)

    play(scenario)
