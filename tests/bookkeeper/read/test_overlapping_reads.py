"""Reads of the same entries on one connection of version 2, whose answers name no request: each is given all it asked for.

A reader that was left one answer short waited until its request's time was up, with everybody else who read on from there.
"""

import asyncio
import itertools
from collections.abc import Sequence
from typing import cast

from hypothesis import example, given
from hypothesis import strategies as st

from bookkeeper.network.link_version2 import Version2Link
from ports.network.read_buffer import SharedRoom
from tests.bookie.runs import entries_of, sealed
from tests.simulation.worlds import run as on_loop
from wire.bookie.version2 import READ_ENTRY, packet_header
from wire.kernels.bookie_responses import read_responses
from wire.run import EntryRun

ENTRIES = 12
WHOLE = sealed(7, 0, count=ENTRIES)
Asked = tuple[int, int]
"""First entry and how many."""


class Deaf(asyncio.Transport):
    """Takes what is written."""

    def write(self, data: object) -> None: ...
    def abort(self) -> None: ...


async def read_with(asked: Sequence[Asked], answers: Sequence[EntryRun]) -> list[EntryRun]:
    """Results of the reads when these answers come, in this order."""
    loop = asyncio.get_running_loop()
    link = Version2Link("b1", SharedRoom(), 5.0, lambda: None)
    link.connection_made(cast(asyncio.Transport, Deaf()))
    reads = [loop.create_task(link.read(7, first, count)) for first, count in asked]
    await asyncio.sleep(0)
    for answer in answers:
        frames = read_responses(answer, packet_header(READ_ENTRY))
        link.get_buffer(-1)[: len(frames)] = frames
        link.buffer_updated(len(frames))
    done, waiting = await asyncio.wait(reads, timeout=1)
    link.connection_lost(None)
    assert len(done) == len(reads), f"without an answer: {[asked[reads.index(each)] for each in waiting]}"
    return [read.result() for read in reads]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Asked], list[EntryRun]]:
    """Reads that may overlap, and their answers: of each read in order and in pieces, those of several mixed."""
    asked, pieces = [], []
    for _ in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, ENTRIES - 1))
        count = draw(st.integers(1, ENTRIES - first))
        asked.append((first, count))
        cuts = sorted({first, first + count, *draw(st.lists(st.integers(first, first + count), max_size=4))})
        pieces.append([WHOLE.entries(low, high - low) for low, high in itertools.pairwise(cuts)])
    turns = draw(st.permutations([number for number, parts in enumerate(pieces) for _ in parts]))
    return asked, [pieces[number].pop(0) for number in turns]


@given(conversations())
@example(([(5, 1), (0, 10)], [WHOLE.entries(0, 10), WHOLE.entries(5, 1)]))
@example(([(5, 1), (8, 1), (0, 10)], [WHOLE.entries(0, 10), WHOLE.entries(8, 1), WHOLE.entries(5, 1)]))
def test_each_read_gets_all_that_it_asked_for_whosever_the_answers_were(talk: tuple[list[Asked], list[EntryRun]]) -> None:
    asked, answers = talk
    found = on_loop(lambda _: read_with(asked, answers))
    for (first, count), run in zip(asked, found, strict=True):
        assert entries_of(run) == entries_of(WHOLE.entries(first, count))
