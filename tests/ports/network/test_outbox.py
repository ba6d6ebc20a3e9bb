"""Writes to a peer: one for each event, in order, and a peer that asks without reading answers is given up."""

import asyncio
from typing import cast

from ports.loop.turn import turn_of
from ports.network.outbox import BLOCKED_ANSWER_BYTES_MAX, FLUSH_BYTES, Outbox
from tests.simulation.worlds import World, run


class Written:
    """A transport that keeps each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert low < high

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def writelines(self, data: list[bytes]) -> None:
        self.writes.append(b"".join(data))


class Site:
    def __init__(self) -> None:
        self.transport, self.overflows = Written(), 0
        self.outbox = Outbox(cast(asyncio.WriteTransport, self.transport), self._overflow)

    @property
    def writes(self) -> list[bytes]:
        return self.transport.writes

    def _overflow(self) -> None:
        self.overflows += 1
        self.outbox.close()


def test_all_that_one_event_brings_is_one_write_in_order() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        with turn_of(world.loop):
            site.outbox.answer(b"1")
            site.outbox.deliver(b"2")
            site.outbox.answer(b"3")
            assert site.writes == []
        assert site.writes == [b"123"]
        with turn_of(world.loop):
            site.outbox.deliver(b"4")
        assert site.writes == [b"123", b"4"]

    run(scenario)


def test_outside_of_an_event_the_write_comes_soon() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        site.outbox.deliver(b"1")
        site.outbox.deliver(b"2")
        await asyncio.sleep(0)
        assert site.writes == [b"12"]

    run(scenario)


def test_a_large_delivery_is_written_piece_by_piece_so_that_back_pressure_is_felt() -> None:
    async def scenario(world: World) -> None:
        site, piece = Site(), bytes(FLUSH_BYTES // 2)
        with turn_of(world.loop):
            for _ in range(5):
                site.outbox.deliver(piece)
            assert list(map(len, site.writes)) == [FLUSH_BYTES, FLUSH_BYTES]
        assert len(site.writes) == 3

    run(scenario)


def test_a_peer_that_asks_without_reading_is_given_up_once_beyond_the_bound() -> None:
    async def scenario(world: World) -> None:
        site, answer = Site(), bytes(1 << 20)
        site.outbox.blocked()
        for _ in range(BLOCKED_ANSWER_BYTES_MAX >> 20):
            site.outbox.answer(answer)
        assert site.overflows == 0
        site.outbox.answer(b"1")
        site.outbox.answer(b"2")
        assert site.overflows == 1

    run(scenario)


def test_a_peer_that_reads_again_may_ask_as_much_again() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        for _ in range(2):
            site.outbox.blocked()
            assert not site.outbox.is_writable
            site.outbox.answer(bytes(BLOCKED_ANSWER_BYTES_MAX))
            site.outbox.unblocked()
        assert (site.overflows, site.outbox.is_writable) == (0, True)

    run(scenario)


def test_deliveries_to_a_blocked_peer_do_not_count_as_answers() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        site.outbox.blocked()
        site.outbox.deliver(bytes(2 * BLOCKED_ANSWER_BYTES_MAX))
        site.outbox.answer(b"1")
        assert site.overflows == 0

    run(scenario)


def test_a_closed_outbox_sends_what_it_had_and_takes_no_more() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        site.outbox.deliver(b"1")
        site.outbox.close()
        site.outbox.deliver(b"2")
        await asyncio.sleep(0)
        assert site.writes == [b"1"]

    run(scenario)
