"""Place: what a process that is one of several is told when it is started: its number, and what it shares with the others.

It is told on the command line (`--process-of`), so that `ps` shows which one is which. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath

from ports.settings import BadSetting

OPTION = "--process-of"


@dataclass(frozen=True, slots=True)
class Place:
    """`number` of `count`, from 1. File descriptors are inherited."""

    number: int
    count: int
    channel: int
    """A stream socket whose other end the supervisor has: its end of file says that the supervisor is gone."""
    fronts: Mapping[str, int]
    """Sockets that are bound to the ports in front, by the key of the port."""
    directory: str
    """Private directory of the sockets that serve metrics."""

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def own_metrics(self) -> str:
        """The path of the socket on which this process tells its metrics."""
        return metrics_of(self.directory, self.number)

    @property
    def all_metrics(self) -> str:
        """The path of the socket on which the supervisor tells those of all."""
        return str(PurePath(self.directory, "all"))


def metrics_of(directory: str, number: int) -> str:
    return str(PurePath(directory, str(number)))


def parsed_place(text: str) -> Place:
    """BadSetting: a person wrote it, or another version did."""
    try:
        fields = json.loads(text)
        fronts = {str(key): int(number) for key, number in fields["fronts"].items()}
        return Place(int(fields["number"]), int(fields["count"]), int(fields["channel"]), fronts, str(fields["directory"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadSetting(
            f"{OPTION} is for the processes that --processes starts, not for people: leave it out ({error})"
        ) from error
