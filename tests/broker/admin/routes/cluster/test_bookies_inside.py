"""The files of a bookie that is inside the broker's process: who has them is told by a route of our own, and counted."""

from broker.service.bookies_inside import BookieInside
from tests.broker.admin.admin_world import AdminWorld, play

ROUTE = "/admin/v2/bookies/local-reads"


def test_a_broker_without_a_bookie_inside_tells_of_none() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.call("GET", ROUTE)).json == {}
        assert b"bookie_local_read_entries" not in (await world.call("GET", "/metrics")).body

    play(scenario)


def test_socket_and_token_are_told_and_kept_by_nobody_on_the_way() -> None:
    async def scenario(world: AdminWorld) -> None:
        inside = BookieInside(b"interpulse-bookie-1", bytes(range(16)), lambda: 7)
        world.service.bookies_inside.update({"127.0.0.1:3181": inside})
        answer = await world.call("GET", ROUTE)
        assert answer.json == {"127.0.0.1:3181": {"socket": "interpulse-bookie-1", "token": bytes(range(16)).hex()}}
        assert answer.headers["cache-control"] == "no-store"
        assert b'bookie_local_read_entries{cluster="standalone"} 7\n' in (await world.call("GET", "/metrics")).body
        assert bytes(range(16)).hex() not in repr(inside)
        assert repr(bytes(range(16))) not in repr(inside)

    play(scenario)
