"""The holes of a cursor over REST, all of them, a page at a time."""

import pytest
from pyroaring import BitMap

from broker.admin.stats import hole_pages
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.routes.topics.test_cursors import filled
from wire.position import Position


def test_all_holes_are_told_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        topic.ledger.roll_over()
        cursor = topic.subscriptions.get("s").cursor
        loaded: list[tuple[int, int, int]] = []

        async def load(*window: int) -> None:
            loaded.append((window[0], window[1], window[2]))

        cursor.load_acknowledged = load
        cursor.acknowledge_entries(3, BitMap([0, 1, 3, 4, 6, 8]))
        cursor.acknowledge_batch_indexes(Position(3, 7), [0b10], 2)
        monkeypatch.setattr(hole_pages, "RANGES_MAX", 1)
        monkeypatch.setattr(hole_pages, "_WINDOW_ENTRIES", 4)
        path = "t/subscription/s/holes?ledgerId={}&entryId={}"
        first = (await world.topic("GET", path.format(-1, 0))).json
        assert first == {"individuallyDeletedMessages": "[(3:-1..3:1],(3:2..3:3]]", "partlyAcknowledged": {}, "next": "3:4"}
        second = (await world.topic("GET", path.format(3, 4))).json
        assert second["individuallyDeletedMessages"] == "[(3:3..3:4],(3:5..3:6]]"
        assert (second["partlyAcknowledged"], second["next"]) == ({"3:7": [2]}, "3:8")
        third = (await world.topic("GET", path.format(3, 8))).json
        assert (third["individuallyDeletedMessages"], third["next"]) == ("[(3:7..3:8]]", "")
        assert loaded == [(3, 0, 3), (3, 4, 7), (3, 8, 9)]
        assert (await world.topic("GET", "t/subscription/other/holes")).status == 404

    play(scenario)
