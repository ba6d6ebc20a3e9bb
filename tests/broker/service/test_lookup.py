"""maxConcurrentLookupRequest: one lookup more than may be under way is refused, over HTTP with 503; the limit is dynamic."""

import pytest

from broker.errors import ServerError
from broker.service.errors import TooManyLookups
from broker.service.settings import BrokerSettings
from tests.broker.admin.admin_world import AdminWorld, play

PATH = "/lookup/v2/topic/persistent/public/default/t"


def test_a_lookup_beyond_the_limit_of_pending_ones_is_refused() -> None:
    async def scenario(world: AdminWorld) -> None:
        with world.service.lookup.pending(), world.service.lookup.pending():
            with pytest.raises(TooManyLookups) as refusal, world.service.lookup.pending():
                pass
            assert refusal.value.code is ServerError.TOO_MANY_REQUESTS
            answer = await world.get(PATH)
            assert answer.refused == (503, "Failed due to too many pending lookup requests")
        assert world.service.meters.lookups_pending == 0
        assert (await world.get(PATH)).status == 200

    play(scenario, BrokerSettings(max_concurrent_lookup_request=2))
