"""One seed: a few connections that send random commands, in rounds, each of which is answered before the next.

Commands depend on the seed and on the broker's answers: a seed repeats itself as far as the broker does.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from wire.generated.pulsar_api_pb2 import BaseCommand

from .account import Account
from .asked import Asked
from .knowledge import Knowledge, Peer
from .line import Line
from .moods import first_asked, next_asked

ROUNDS = 30
BATCH_MAX = 6
LINES_MAX = 3


@dataclass(slots=True)
class Outcome:
    """Outcome of one seed. `ended`: the connections that the broker was given a cause to end, by their names."""

    findings: list[tuple[str, str]] = field(default_factory=list)
    """The connection's name, and what it found."""
    ended: list[str] = field(default_factory=list)
    commands: int = 0
    connections: int = 0


class SeedRun:
    """Drives the lines of a seed."""

    def __init__(self, seed: int, host: str, port: int, errors: Counter[tuple[str, str, str]]) -> None:
        self.known = Knowledge(seed)
        self.outcome = Outcome()
        self._rng = Random(seed)
        self._where = host, port
        self._errors = errors
        self._lines: list[Line] = []

    async def run(self) -> Outcome:
        rng = self._rng
        self._lines = [await self._open() for _ in range(rng.randrange(1, LINES_MAX + 1))]
        for _ in range(ROUNDS):
            busy = rng.sample(self._lines, rng.randrange(1, len(self._lines) + 1))
            for line in busy:
                self._ask(line)
            for line in busy:
                line.begin_settling()
            await asyncio.gather(*(line.settled() for line in busy))
            for index, line in enumerate(self._lines):
                if line.account.is_lost:
                    self._note(line)
                    self._lines[index] = await self._open()
        for line in self._lines:
            await line.closed()
            self.outcome.findings += [(line.name, each) for each in line.account.findings]
        return self.outcome

    async def _open(self) -> Line:
        self.outcome.connections += 1
        account = Account(Peer(self.outcome.connections), self.known, self._errors)
        return await Line.opened(*self._where, account)

    def _ask(self, line: Line) -> None:
        rng, peer = self._rng, line.account.peer
        if not peer.is_connected:
            batch = [first_asked(rng, peer, self.known)]
            line.account.sends(batch[0])
        else:
            batch = self._batch(line)
        self.outcome.commands += len(batch)
        line.send(batch)

    def _batch(self, line: Line) -> list[Asked]:
        """Commands that the broker finds in one read. Commands after the end of a connection would not be read. A peer that
        closes a producer and asks at once for another one by the same number cannot tell whose the answers are."""
        batch: list[Asked] = []
        for _ in range(self._rng.randrange(1, BATCH_MAX + 1)):
            batch.append(next_asked(self._rng, line.account.peer, self.known))
            line.account.sends(batch[-1])
            if batch[-1].ends or (command := batch[-1].command) is None or command.type == BaseCommand.CLOSE_PRODUCER:
                break
        return batch

    def _note(self, line: Line) -> None:
        self.outcome.findings += [(line.name, each) for each in line.account.findings]
        if line.account.may_end and not line.account.is_loose:
            self.outcome.ended.append(line.name)
