"""Reason for a failed query in one line: Spark's text has the stacks of three languages. Pure."""

_CAUSE, _FULL = "Caused by: ", "No space left on device"
_THROWN = ": "
"""Before what Java threw, in the second line of Py4J's: the first one says which method was called."""


def reason(text: str) -> str:
    """The line that says why: one of ours, or the last cause, or what Java threw, or the first line."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    own = [each.partition("errors.")[2] for each in lines if "pyspark_pulsar" in each and "errors." in each]
    causes = [each for each in lines if each.startswith(_CAUSE) or _FULL in each]
    thrown = [each for each in lines if each.startswith(_THROWN)]
    found = own or causes or thrown[:1] or lines[:1] or ["nobody says why"]
    return found[-1].removeprefix(_CAUSE).removeprefix(_THROWN)
