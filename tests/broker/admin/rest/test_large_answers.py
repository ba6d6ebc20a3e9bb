"""A large answer is made and sent in slices, and its members leave memory in slices."""

import asyncio
import json
import weakref
from itertools import pairwise
from typing import Any

from starlette.types import Message

from broker.admin.rest.answers import json_answer
from broker.admin.rest.json_texts import LARGE, json_texts
from tests.cost import Counter

COUNT = 4 * LARGE


class Member(dict[str, Any]):
    """Can be watched."""


def watched(count: int) -> tuple[dict[str, Any], list["weakref.ref[Member]"]]:
    made = {f"s-{number}": Member(name=number, text="x" * 300) for number in range(count)}
    return {"subscriptions": made, "count": count}, [weakref.ref(each) for each in made.values()]


async def sent(value: Any) -> list[Message]:
    messages: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("an answer asks for nothing")

    async def send(message: Message) -> None:
        messages.append(message)

    await json_answer(value, 201)({"type": "http"}, receive, send)
    return messages


def test_the_pieces_together_are_the_body_and_its_length_is_told() -> None:
    value, _ = watched(COUNT)
    first, *pieces = asyncio.run(sent(value))
    body = b"".join(piece["body"] for piece in pieces)
    assert json.loads(body) == value
    assert first["status"] == 201
    assert dict(first["headers"])[b"content-length"] == str(len(body)).encode()
    assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]


def test_a_turn_of_the_loop_makes_and_sends_a_part_of_the_body() -> None:
    async def scenario() -> tuple[Counter, int]:
        value, _ = watched(COUNT)
        with Counter() as counter:
            messages = await sent(value)
        return counter, max(len(message.get("body", b"")) for message in messages)

    counter, longest_piece = asyncio.run(scenario())
    assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"
    assert longest_piece < 100_000


def test_members_leave_memory_one_by_one_as_their_text_is_made() -> None:
    value, members = watched(COUNT)
    texts = json_texts(value, json.dumps)
    del value
    there = [sum(each() is not None for each in members)]
    for number, _ in enumerate(texts):
        if number % 100 == 0:
            there.append(sum(each() is not None for each in members))
    assert max(before - after for before, after in pairwise(there)) <= 100
    assert there[-1] < COUNT / 10


def test_a_value_that_somebody_else_has_stays_as_it_is() -> None:
    value, _ = watched(COUNT)
    list(json_texts(value, json.dumps))
    assert len(value["subscriptions"]) == COUNT
    assert value["subscriptions"]["s-7"]["name"] == 7
