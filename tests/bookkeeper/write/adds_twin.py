"""One ledger's adds on bookies that answer when they are told to; see `part_twins.Twin`."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.bookkeeper.part_twins import Twin
from tests.bookkeeper.write.test_parts import settled
from tests.simulation import worlds
from wire.bookie.codes import BookieCode


def on_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    worlds.run(lambda _: scenario())


def adds(sizes: tuple[int, int, int], spares: int = 0, seconds: float = 0.0, *, delays: bool = False) -> Twin:
    return Twin(sizes, spares, seconds, delays=delays, takes_parts=True)


async def answer(twin: Twin, *places: tuple[str, int], code: BookieCode = BookieCode.EOK) -> None:
    """These bookies answer about these entries, one after the other."""
    for place in places:
        twin.answer(place, code)
        await settled()
        twin.adds.check_invariants()


async def answer_all(twin: Twin) -> None:
    """Every bookie stores what it was asked for, until nothing is asked for any more."""
    while twin.asked:
        await answer(twin, twin.asked[0][0])


def answers(twin: Twin) -> list[object]:
    """First entry and error of each answered append, in the order of the answers."""
    return [each[:2] for each in twin.told if isinstance(each, tuple) and isinstance(each[0], int)]


def first_ids(twin: Twin) -> list[int]:
    return [place[1] for place, _ in twin.asked]
