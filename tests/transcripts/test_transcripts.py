"""Each transcript is what its machine does, and the format notices what is wrong with a transcript."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.transcripts.stories import FOLDER, MACHINES, replayed, stories
from tests.transcripts.transcript import Step, TranscriptError, first_difference, replay

WIDTH_MAX = 128
HOW = "`python -m tests.transcripts --rewrite` after a deliberate change"


@pytest.mark.parametrize("story", list(stories()), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_machine_does_what_the_transcript_says(story: Path) -> None:
    expected, actual = story.read_text(), replayed(story)
    found = first_difference(expected, actual)
    if found is not None:
        line, written, done = found
        pytest.fail(f"{story.relative_to(FOLDER)}:{line}: expected {written!r}, the machine gives {done!r}; {HOW}")
    assert expected == actual


def test_every_machine_has_stories_and_each_begins_with_its_claim() -> None:
    told = list(stories())
    assert {story.parent.name for story in told} == set(MACHINES)
    assert [story.name for story in told if not story.read_text().startswith("# ")] == []
    assert [story.name for story in told if any(len(line) > WIDTH_MAX for line in story.read_text().splitlines())] == []


class Counter:
    """Smallest machine: adds, and never beyond 9."""

    def __init__(self, given: Step) -> None:
        self._count = given.number("start", 0)

    def handle(self, step: Step) -> Iterable[str]:
        if step.name != "Added":
            raise step.unknown()
        self._count += step.number("by")
        return ["Cheer"] if self._count == 5 else []

    def state(self) -> Mapping[str, str]:
        return {"count": str(self._count)} if self._count else {}

    def check_invariants(self) -> None:
        assert self._count < 10


def test_outcomes_are_written_below_their_events_and_replace_older_ones() -> None:
    text = "# Counts.\nwith start=4\n\n> Added by=1\n  = old: outcome\n# Back.\n> Added by=-5\n> Added by=0\n"
    written = replay(text, Counter)
    assert written == (
        "# Counts.\nwith start=4\n\n> Added by=1\n  Cheer\n  = count: 5\n# Back.\n> Added by=-5\n  = count: gone\n"
        "> Added by=0\n  nothing\n"
    )
    assert replay(written, Counter) == written
    assert first_difference(text, written) == (5, "  = old: outcome", "  Cheer")


@pytest.mark.parametrize(
    "text",
    [
        "> Subtracted by=1",
        "> Added",
        "> Added by=1 twice",
        "> Added by=1 by=2",
        "with stop=1",
        "with start=1\nwith start=2",
        "> Added by=1\nwith start=1",
        "Added by=1",
    ],
)
def test_a_transcript_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(TranscriptError):
        replay(text, Counter)


def test_a_broken_invariant_names_the_event() -> None:
    with pytest.raises(AssertionError) as failure:
        replay("# Too far.\n> Added by=4\n> Added by=6\n", Counter)
    assert failure.value.__notes__ == ["after the event of line 4: > Added by=6"]
