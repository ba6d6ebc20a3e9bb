"""Works begin at a bounded pace, in turns of the parties, and in the order in which each party asked."""

import asyncio

from ports.starts import Starts


async def _begun(starts: Starts, asked: list[tuple[int, str]]) -> list[str]:
    """The names of works in the order in which they begin, when all of these parties ask at once and one more later."""
    begun: list[str] = []

    async def work(party: int, name: str) -> None:
        if not starts.take():
            await starts.turn(party)
        begun.append(name)

    async with asyncio.TaskGroup() as group:
        for party, name in asked:
            group.create_task(work(party, name))
        await asyncio.sleep(0)
        group.create_task(work(1, "late"))
    return begun


def test_what_a_party_asks_for_later_does_not_begin_before_what_it_asked_for_first() -> None:
    asked = [(1, f"one-{number}") for number in range(20)]
    assert asyncio.run(_begun(Starts(per_turn=3), asked)) == [*[name for _, name in asked], "late"]


def test_a_party_with_one_work_does_not_wait_for_all_of_another() -> None:
    asked = [*((1, f"one-{number}") for number in range(30)), (2, "two")]
    assert asyncio.run(_begun(Starts(per_turn=2), asked)).index("two") <= 6


def test_so_many_begin_in_a_turn_and_no_more() -> None:
    async def scenario() -> None:
        starts = Starts(per_turn=4)
        assert [starts.take() for _ in range(6)] == [True] * 4 + [False] * 2
        await asyncio.sleep(0)
        assert [starts.take() for _ in range(5)] == [True] * 4 + [False]

    asyncio.run(scenario())
