"""Transcripts on disk: a folder for each machine, a file for each story."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.transcripts.machines.admission import Admission
from tests.transcripts.machines.coordinator import Coordinator
from tests.transcripts.machines.key_shared import KeyShared
from tests.transcripts.machines.ownership import Ownership
from tests.transcripts.machines.quorum import Quorums
from tests.transcripts.transcript import Machine, Step, replay

FOLDER = Path(__file__).resolve().parent
MACHINES: Mapping[str, Callable[[Step], Machine]] = {
    "admission": Admission,
    "coordinator": Coordinator,
    "key_shared": KeyShared,
    "ownership": Ownership,
    "quorum": Quorums,
}


def stories() -> Iterator[Path]:
    for machine in MACHINES:
        yield from sorted((FOLDER / machine).glob("*.txt"))


def replayed(story: Path) -> str:
    """The story as its machine tells it now."""
    return replay(story.read_text(), MACHINES[story.parent.name])
