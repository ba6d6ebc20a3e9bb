"""Ended things are counted once, and watched while they are in memory."""

from ports.ends import Ends


class Thing:
    """Refers to itself, if it is told to."""

    me: "Thing | None" = None


def test_a_thing_that_has_ended_is_there_until_its_memory_is_free() -> None:
    ends, kept, gone = Ends(), Thing(), Thing()
    ends.ended(kept)
    ends.ended(gone)
    assert (ends.count, ends.still_there) == (2, 2)
    del gone
    assert (ends.count, ends.still_there) == (2, 1)
    kept.me = kept
    del kept
    assert ends.still_there == 1, "a cycle stays"
