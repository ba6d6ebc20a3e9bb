"""Processes of `--processes N`: the ports of each, their settings, and the ports in front. Pure.

The rule: process i (1 to N) has each of the configured ports + i; the configured ports themselves are in front, and whichever
process is free answers there. Relies on nobody else having these ports; refuses what cannot be by the name of the key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ports.settings import BadSetting

PROCESSES_MAX = 64
PORT_MAX = 65_535
_PORT_OF_URL = re.compile(r"(:)(\d+)$")


@dataclass(frozen=True, slots=True)
class Front:
    """A port that all processes share. `is_web`: of HTTP; `is_tls`: connections begin with a handshake."""

    key: str
    host: str
    port: int
    is_web: bool
    is_tls: bool


@dataclass(frozen=True, slots=True)
class ProcessesPlan:
    """`settings`: by number, what each process is given beside what all have."""

    kind: str
    settings: Mapping[int, tuple[str, ...]]
    fronts: tuple[Front, ...]
    urls: Mapping[str, str]
    """In front, as the ready line says them."""


def checked_count(command: str, text: str) -> int:
    """BadSetting for a number of processes that cannot be."""
    if not text.isdigit() or not 1 <= int(text) <= PROCESSES_MAX:
        raise BadSetting(
            f"--processes {text}: expected 1 to {PROCESSES_MAX}, at most one for each core, such as `{command} --processes 2`"
        )
    return int(text)


def shifted_ports(ports: Mapping[str, int], count: int) -> dict[int, dict[str, int]]:
    """Ports by number of the process and key. BadSetting where two would be the same, or beyond the last port."""
    taken = {port: f"{key}={port}" for key, port in ports.items()}
    found: dict[int, dict[str, int]] = {}
    for key, port in ports.items():
        if port == 0:
            raise BadSetting(f"{key}=0: with --processes every port is fixed: set it to a number")
        if port + count > PORT_MAX:
            raise BadSetting(
                f"{key}={port}: process {count} would have port {port + count}: set it to {PORT_MAX - count} or lower"
            )
        for number in range(1, count + 1):
            own = f"process {number} with {key} + {number}"
            if (other := taken.setdefault(port + number, own)) != own:
                raise BadSetting(
                    f"port {port + number} would be that of {own}, and of {other}: with --processes {count} set ports at least"
                    f" {count + 1} apart"
                )
            found.setdefault(number, {})[key] = port + number
    return found


def shifted_listeners(listeners: Sequence[str], number: int) -> str:
    """`advertisedListeners` of one process: each port + its number. BadSetting for a URL without a port."""
    shifted = []
    for each in listeners:
        found = _PORT_OF_URL.search(each.strip())
        if found is None:
            raise BadSetting(f"advertisedListeners: {each}: with --processes each URL needs its port")
        shifted.append(f"{each.strip()[: found.start(2)]}{int(found[2]) + number}")
    return ",".join(shifted)


def dealt(key: str, directories: Sequence[str], number: int, count: int) -> tuple[str, ...]:
    """The directories of one process: every Nth, beginning with its own number. BadSetting when they are too few."""
    if len(directories) < count:
        raise BadSetting(f"{key}={','.join(directories)}: {len(directories)} for {count} processes: name one for each or more")
    if len(set(directories)) < len(directories):
        raise BadSetting(f"{key}={','.join(directories)}: a directory stands there twice")
    return tuple(directories[number - 1 :: count])
