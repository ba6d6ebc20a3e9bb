"""A message costs a Shared subscription time linear in its chunks, however many it has. It compared each with all before it."""

from collections.abc import Callable
from typing import Any

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import ConsumerAdded, ConsumerId
from broker.dispatchers.entry_sets import EntrySet
from broker.dispatchers.keys.chunks import Chunk, ChunkedMessages
from broker.dispatchers.permits import Receiver
from tests.cost import assert_linear
from wire.position import Position

SHAPES: dict[str, Callable[[int, int], Chunk]] = {
    "one message": lambda n, each: Chunk("m", each, each + 1 == n),
    "a message of two chunks each": lambda n, each: Chunk(f"m{each // 2}", each % 2, each % 2 == 1),
    "first chunks alone": lambda n, each: Chunk(f"m{each}", 0, False),
    "chunks that say the same place": lambda n, each: Chunk("m", 1, True),
    "two messages in turns": lambda n, each: Chunk(f"m{each % 2}", each // 2, False),
}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_chunks_cost_time_linear_in_their_number(shape: str, waits: bool) -> None:
    """Each is read, delivered or put off, and acknowledged."""

    def work(n: int) -> Callable[[], Any]:
        chunked, receiver, put_off = ChunkedMessages(), Receiver(ConsumerAdded(ConsumerId(1), "c")), EntrySet()

        def handed_out() -> None:
            for each in range(n):
                chunk, position = SHAPES[shape](n, each), Position(5, each)
                chunked.read(chunk, position)
                if waits and each % 2:
                    chunked.wait(receiver, position)
                elif not chunked.is_behind(chunk, position, put_off):
                    chunked.begun(chunk, receiver)
            for each in range(n):
                chunked.drop(5, BitMap((each,)))

        return handed_out

    assert_linear(work, 100, bound=10.5)  # a bitmap counts as its first 64 entries
