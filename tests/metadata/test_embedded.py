"""Real processes and kill -9: every write that was answered is there afterwards."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from metadata.embedded import EmbeddedStore

ROOT = Path(__file__).parents[2]
WRITER = """
import asyncio, sys
from metadata.embedded import EmbeddedStore
from metadata.store import Put

async def write(store, worker):
    number = 0
    while True:
        stat, other = await store.commit([Put(f"/w/{worker}", b"%d" % number), Put(f"/twin/{worker}", b"%d" % number)])
        numbered = await store.put("/q/n-", b"", sequential=True)
        print(f"{worker} {number} {stat.version} {int(numbered.path[-10:])}", flush=True)
        number += 1

async def main():
    store = await EmbeddedStore.open(sys.argv[1])
    await asyncio.gather(*(write(store, worker) for worker in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("lines_before_kill", [1, 40, 400])
def test_answered_writes_survive_kill_9(tmp_path: Path, lines_before_kill: int) -> None:
    directory = str(tmp_path / "metadata")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, directory], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(lines_before_kill)]
        finally:
            process.kill()
        lines += process.stdout.readlines()
    answered: dict[int, int] = {}
    numbers: list[int] = []
    for each in lines:
        if each.endswith(b"\n"):  # the last may be cut
            match = re.fullmatch(rb"(\d+) (\d+) (\d+) (\d+)\n", each)
            assert match is not None
            worker, number, version, sequence = map(int, match.groups())
            assert number == version
            answered[worker] = number
            numbers.append(sequence)
    assert len(numbers) == len(set(numbers)) >= lines_before_kill
    asyncio.run(_check(directory, answered, numbers))


async def _check(directory: str, answered: dict[int, int], numbers: list[int]) -> None:
    store = await EmbeddedStore.open(directory)
    for worker, number in answered.items():
        found, twin = await store.get(f"/w/{worker}"), await store.get(f"/twin/{worker}")
        assert found is not None
        assert twin is not None
        assert int(found.value) >= number
        assert int(found.value) == found.stat.version
        assert twin.value == found.value
    assert {f"n-{number:010d}" for number in numbers} <= set(await store.children("/q"))
    again = await store.put("/q/n-", b"", sequential=True)
    assert int(again.path[-10:]) > max(numbers)
    await store.close()
