"""NAME=VALUE options of the command line, which may come several times. Pure."""

from collections.abc import Sequence

from ..errors import WrongOption


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Values by name; the last one counts. WrongOption."""
    found = {}
    for each in texts:
        name, sign, value = each.partition("=")
        if not sign or not name.strip():
            raise WrongOption(f"{option} {each}: expected NAME=VALUE")
        found[name.strip()] = value
    return found
