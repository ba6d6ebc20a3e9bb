"""Writes to a bookie: one for all that an event of the loop brings, and one for each round without an event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from bookkeeper.network.link import Add
from bookkeeper.network.link_version2 import Version2Link
from ports.loop.turn import turn_of
from ports.network.read_buffer import SharedRoom
from tests.bookie.runs import KEY, sealed


class Writes(asyncio.Transport):
    """Keeps what each write has."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: object) -> None:
        self.write(b"".join(cast(list[bytes], list_of_data)))

    def abort(self) -> None:
        pass


def linked(scenario: Callable[[Version2Link, Callable[[int], None]], Awaitable[list[bytes]]]) -> list[bytes]:
    """Writes that the scenario returns; it gets a link and a function that adds an entry to a ledger."""

    async def run() -> list[bytes]:
        link = Version2Link("b1", SharedRoom(), 5.0, lambda: None)
        link.connection_made(Writes())

        def add(ledger_id: int) -> None:
            future = asyncio.get_running_loop().create_future()
            future.add_done_callback(lambda done: done.exception())
            link.add(Add(sealed(ledger_id, 0), KEY, recovery=False, is_deferred=False, future=future))

        try:
            return await scenario(link, add)
        finally:
            link.connection_lost(None)
            await asyncio.sleep(0)

    return asyncio.run(run())


def written(link: Version2Link) -> list[bytes]:
    return cast(Writes, link._transport).written


async def one_by_one(link: Version2Link, add: Callable[[int], None]) -> list[bytes]:
    for ledger_id in (1, 2, 3):
        add(ledger_id)
        await asyncio.sleep(0)
    return written(link)


def test_adds_outside_an_event_are_sent_together_with_the_next_round_of_the_loop() -> None:
    async def together(link: Version2Link, add: Callable[[int], None]) -> list[bytes]:
        for ledger_id in (1, 2, 3):
            add(ledger_id)
        assert written(link) == []
        await asyncio.sleep(0)
        return written(link)

    alone = linked(one_by_one)
    assert len(alone) == 3
    assert linked(together) == [b"".join(alone)]


def test_adds_of_one_event_go_in_one_write_at_its_end_in_their_order() -> None:
    async def together(link: Version2Link, add: Callable[[int], None]) -> list[bytes]:
        with turn_of(asyncio.get_running_loop()):
            for ledger_id in (1, 2, 3):
                add(ledger_id)
            assert written(link) == []
        return written(link)

    assert linked(together) == [b"".join(linked(one_by_one))]


def test_adds_gathered_for_a_link_that_is_lost_meanwhile_are_not_sent() -> None:
    async def scenario(link: Version2Link, add: Callable[[int], None]) -> list[bytes]:
        with turn_of(asyncio.get_running_loop()):
            add(1)
            link.end("lost")
        return written(link)

    assert linked(scenario) == []
