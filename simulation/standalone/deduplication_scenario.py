"""Scenario: the life of a standalone that deduplicates. Messages without a receipt are sent again, and each is stored once.

The faults are those of `scenario`, and more, while producers work all the time. The promise is stronger: no message is in two
places, and what a receipt without a place calls a repeat is in one.
"""

import dataclasses
from typing import TextIO

from simulation.checks.history import MessageId, MessageKey, Violation
from simulation.checks.model import Publishes
from simulation.standalone.plan import WORK_SECONDS, Fault, FaultKind, draw_plan
from simulation.standalone.scenario import Scenario
from simulation.world.bounded import bounded
from simulation.world.outcome import Outcome
from simulation.world.rng import stream

_STORM = (FaultKind.KILL, FaultKind.POWER_CUT, FaultKind.RESET, FaultKind.PARTITION, FaultKind.UNLOAD)
"""Each makes producers send again."""


class PublishedOnce(Publishes):
    """Promise of one topic with deduplication."""

    def __init__(self) -> None:
        super().__init__()
        self._where: dict[MessageKey, MessageId] = {}

    def _place(self, where: MessageId, key: MessageKey) -> None:
        super()._place(where, key)
        known = self._where.setdefault(key, where)
        if known != where:
            raise Violation(f"{key} is stored twice, at {known} and {where}")

    def check_repeats(self) -> None:
        """Checks repeats at the end, when everything was read."""
        lost = sorted(key for key in self.repeated if key not in self._where)
        if lost:
            raise Violation(f"{lost[0]} was called a repeat and is nowhere")


class DeduplicationScenario(Scenario):
    """The same, with the check of repeats at its end."""

    def __init__(self, seed: int, sink: TextIO | None = None) -> None:
        rng = stream(seed, "deduplication")
        settings = {
            "brokerDeduplicationEnabled": "true",
            "brokerDeduplicationEntriesInterval": str(rng.choice((1, 10, 1000))),
            "brokerDeduplicationSnapshotIntervalSeconds": str(rng.choice((0, 1, 120))),
        }
        plan = draw_plan(seed)
        self._published = PublishedOnce()
        busy = tuple(
            (where, dataclasses.replace(shape, entries=40, window_entries=20, pause_seconds=WORK_SECONDS / 50))
            for where, shape in plan.producers
        )
        faults = [Fault(at, rng.choice(_STORM), 0.01, rng.randrange(plan.clients)) for at in (2.0, 3.5, 5.0, 6.5)]
        plan = dataclasses.replace(
            plan,
            settings={**plan.settings, **settings},
            producers=busy,
            consumers=plan.consumers[:1],
            faults=tuple(sorted((*plan.faults, *faults), key=lambda fault: fault.at)),
        )
        super().__init__(plan, sink, self._published)

    async def _play(self) -> None:
        await super()._play()
        self._published.check_repeats()


@bounded
def run_deduplication_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life that this seed stands for."""
    return DeduplicationScenario(seed, sink).run()
