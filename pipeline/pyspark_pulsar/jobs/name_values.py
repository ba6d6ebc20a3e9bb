"""NAME=VALUE, as options of the command line have it that may come several times. Pure."""

from collections.abc import Sequence

from ..errors import WrongOption


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Of one name the last counts. WrongOption."""
    found = {}
    for each in texts:
        name, sign, value = each.partition("=")
        if not sign or not name.strip():
            raise WrongOption(f"{option} {each}: expected NAME=VALUE")
        found[name.strip()] = value
    return found
