"""RequestLimit: so many requests a second, what was not used counts in the next one, and the rest gets 429."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ports.network.request_limit import RequestLimit, RequestRate


def test_a_second_that_was_not_used_is_used_in_the_next_one_and_no_older_one() -> None:
    rate = RequestRate(10, 0.0)
    assert [rate.take(0.0) for _ in range(3)] == [True, False, False]
    assert [rate.take(0.05), rate.take(0.1)] == [False, True]
    assert [rate.take(100.0) for _ in range(12)] == [True] * 11 + [False]


def test_a_rate_below_one_lets_one_in_after_a_while() -> None:
    rate = RequestRate(0.1, 0.0)
    assert [rate.take(now) for now in (0.0, 9.9, 10.0, 10.1)] == [True, False, True, False]


@given(st.floats(0.5, 200), st.lists(st.floats(0, 0.5), min_size=1, max_size=300))
def test_no_more_requests_get_in_than_the_rate_and_a_burst_of_one_second_allow(per_second: float, pauses: list[float]) -> None:
    rate, now, let_in = RequestRate(per_second, 0.0), 0.0, 0
    for pause in pauses:
        now += pause
        let_in += rate.take(now)
    assert let_in <= now * per_second + per_second + 2


def test_a_request_over_the_limit_is_answered_with_429_and_counted() -> None:
    served: list[str] = []
    refused: list[None] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["path"])

    async def send(event: Any) -> None:
        sent.append(event)

    async def scenario() -> None:
        limit = RequestLimit(app, 0.001, lambda: refused.append(None))
        for path in ("/a", "/b", "/c"):
            await limit({"type": "http", "path": path}, None, send)

    asyncio.run(scenario())
    assert (served, len(refused)) == (["/a"], 2)
    assert [event.get("status", event.get("body")) for event in sent] == [429, b'{"reason":"Too Many Requests"}'] * 2
