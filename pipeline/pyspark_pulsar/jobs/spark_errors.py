"""What Spark says when a query fails, in one line: its text has the stacks of three languages. Pure."""

_CAUSE, _FULL = "Caused by: ", "No space left on device"


def reason(text: str) -> str:
    """The line that says why: one of ours, or the last cause, or the first line."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    own = [each.partition("errors.")[2] for each in lines if "pyspark_pulsar" in each and "errors." in each]
    causes = [each for each in lines if each.startswith(_CAUSE) or _FULL in each]
    found = own or causes or lines[:1] or ["nobody says why"]
    return found[-1].removeprefix(_CAUSE)
