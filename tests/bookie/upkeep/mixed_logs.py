"""Bookie whose entry logs each have entries of four ledgers."""

import dataclasses

from bookie.bookie import Bookie
from tests.bookie.machines import SMALL, Machine
from tests.bookie.runs import KEY, sealed

UNTHROTTLED = dataclasses.replace(SMALL, compaction_rate_by_bytes=0)
LEDGERS = (1, 2, 3, 4)
SIZE = 40_000
ROUNDS = 10


async def mixed_logs(machine: Machine, rounds: int = ROUNDS) -> Bookie:
    """Four ledgers, an entry of each in every flush: several logs, all of them mixed."""
    bookie = await machine.start()
    for entry_id in range(rounds):
        for ledger_id in LEDGERS:
            await bookie.add(sealed(ledger_id, entry_id, 1, SIZE), KEY)
        await bookie.flush()
    return bookie


def logs(machine: Machine) -> list[str]:
    return [path for path in machine.disk.paths() if path.endswith(".log")]
