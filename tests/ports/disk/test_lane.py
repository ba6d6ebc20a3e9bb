"""Jobs of a lane: callers that are cancelled, listeners, the turn in which they are called."""

import asyncio
from functools import partial
from pathlib import Path

from ports.disk.real_disk import RealDisk
from ports.loop.promise import listen
from ports.loop.turn import turn_of
from tests.ports.disk.test_real_disk import on_disk


def test_a_cancelled_caller_leaves_the_lane_working(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True)
        task = asyncio.ensure_future(file.write(0, [b"abc"]))
        await asyncio.sleep(0)
        task.cancel()
        assert await file.read(0, 3) == b"abc"

    on_disk(scenario)


def test_a_listener_hears_of_a_write_within_a_turn_that_also_runs_its_follow_ups(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        turn, told, ended = turn_of(asyncio.get_running_loop()), list[str](), asyncio.Event()

        def heard(number: int, write: "asyncio.Future[None]") -> None:
            told.append(f"{number} {write.result()}")
            if number == 1:
                turn.at_end(lambda: told.append("end"))
                turn.at_end(ended.set)

        for number in (1, 2):
            listen(file.begin_write(4 * number, [b"abcd"], sync=True), partial(heard, number))
        await ended.wait()
        assert told[0] == "1 None"
        assert "end" in told
        assert await file.read(0, 100) == bytes(4) + b"abcdabcd"

    on_disk(scenario)


def test_a_listener_hears_of_a_failed_write(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        await file.close()
        failed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        listen(file.begin_write(0, [b"abcd"], sync=True), lambda write: failed.set_result(write.exception()))
        assert isinstance(await failed, OSError)

    on_disk(scenario)
