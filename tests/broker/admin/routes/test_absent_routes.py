"""Routes of Apache's whose feature is not here say so, rather than that there is no such path."""

import re

from broker.admin.routes.absent_routes import ABSENT
from tests.broker.admin.admin_world import AdminWorld, play


def test_a_route_whose_feature_is_missing_is_501_with_the_reason() -> None:
    async def scenario(world: AdminWorld) -> None:
        for methods, path, _, reason in ABSENT:
            named = re.sub(r"\{\w+\}", "x", path.replace("{tenant}", "public").replace("{namespace}", "default"))
            for method in methods:
                status, told = (await world.call(method, named)).refused
                assert status == 501, named
                assert re.fullmatch(r"[\w-]+ is not supported: " + re.escape(reason), told), told

    play(scenario)
