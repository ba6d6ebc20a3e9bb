"""LedgerProtocol: every interleaving of a ledger's writer, two clients that recover it, and its bookies, within small bounds.

Real are the pure machines: `QuorumTracker` (the writer's, and a recovery's for what it writes again), `Recovery`,
`bookie.ledgers.Ledgers` (what a fence refuses), and what the client writes into the metadata (`in_recovery`, `closed_at`,
`WriterEnsembles._changed` with `with_segment`, `BookieLedgerWriter._closed_metadata`).
Modelled are the drivers and what lies between: `ReplicatedAdds` (`protocol_writer`), `RecoveryDriver` (`protocol_recoverer`;
without replacing bookies that fail while it writes), the registry's compare-and-set (atomic), the bookie's storage (what is
answered is durable), the network. A connection keeps the order of a writer's adds. A request may stay under way for ever, which
stands for every crash and partition; the writer may give up a bookie, whose requests under way may arrive all the same. An
answer comes with what it answers. One bookie may be damaged from the start: it says so of every entry that it has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bookkeeper.write.quorum_tracker import Quorum
from simulation.protocol.exhaustive import Found, search
from simulation.protocol.recoverer import recoverer_steps
from simulation.protocol.world import Bounds, World, first_world
from simulation.protocol.writer import writer_steps

STATES_MAX = 3_000_000
ALL, BOTH, STRIPED = Quorum(3, 3, 2), Quorum(2, 2, 2), Quorum(3, 2, 2)
BOUNDS = {
    "two entries": Bounds(3, ALL, entries=2, recoverers=1),
    "two recoverers": Bounds(3, ALL, entries=1, recoverers=2),
    "a spare, both": Bounds(3, BOTH, entries=2, recoverers=1, given_up_max=2),
    "a spare, two recoverers": Bounds(3, BOTH, entries=1, recoverers=2, given_up_max=1),
    "striped": Bounds(3, STRIPED, entries=2, recoverers=1, given_up_max=1),
    "damaged": Bounds(3, ALL, entries=2, recoverers=1, damaged=0),
}


@dataclass(frozen=True, slots=True)
class Modelled:
    """A world as `exhaustive.search` wants it."""

    world: World

    def key(self) -> Any:
        return self.world.key()

    def steps(self) -> Iterator[tuple[str, Callable[[], "Modelled"]]]:
        for what, step in (*writer_steps(self.world), *recoverer_steps(self.world)):
            yield what, lambda step=step: Modelled(step())  # type: ignore[misc]


def check(bounds: Bounds, states_max: int = STATES_MAX) -> Found:
    """Everything that can happen within these bounds."""
    return search(Modelled(first_world(bounds)), states_max)
