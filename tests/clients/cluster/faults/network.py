"""A network of this machine's own for the members of a cluster: each in a namespace, all packets through one router.

Owns namespaces, addresses and the router's rules. Two members are parted by rules that drop the packets between them:
neither is told, as with a pulled cable. Needs root; the caller that starts the processes sees that they end first.
"""

import functools
import os
import random
import shutil
import subprocess
from types import TracebackType
from typing import Self

import pytest

TOOLS = ("ip", "ss", "nsenter")
TOOL_SECONDS_MAX = 60
HERE = "here"
"""The name of this machine itself, where the clients are."""
_GATEWAY = "169.254.1.1"


def run(*command: str) -> str:
    """Output of a command; AssertionError with all of it when the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@functools.cache
def _why_no_network() -> str:
    if os.geteuid() != 0:
        return "needs root to make network namespaces"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)} to make network namespaces"
    try:
        with Network() as network:
            one, other = network.add("one"), network.add("other")
            network.part("one", "other")
            network.join("one", "other")
            assert one != other
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f"network namespaces cannot be made here: {error}"
    return ""


def need_network() -> None:
    """Skips the test where it cannot be had."""
    if _why_no_network():
        pytest.skip(_why_no_network())


class Network:
    """`with` makes the router and takes everything away again."""

    def __init__(self) -> None:
        chance = random.SystemRandom()  # not the tests' own: two runs at a time have the same seed
        self._token = f"mg{chance.randrange(1 << 24):06x}"
        self._prefix = f"10.{chance.randrange(64, 256)}.{chance.randrange(256)}"
        self.addresses: dict[str, str] = {}
        self._parted: set[tuple[str, str]] = set()

    def namespace(self, name: str) -> str:
        return f"{self._token}-{name}"

    @property
    def _router(self) -> str:
        return self.namespace("router")

    def __enter__(self) -> Self:
        try:
            run("ip", "netns", "add", self._router)
            run(*self.inside("router"), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            self._wire(HERE, "254")
        except BaseException:
            self.close()
            raise
        return self

    def inside(self, name: str) -> tuple[str, ...]:
        """Before a command, so that it runs there; it becomes the command, with the same process id."""
        return ("nsenter", f"--net=/run/netns/{self.namespace(name)}")

    def add(self, name: str) -> str:
        """A namespace of that name; its address."""
        run("ip", "netns", "add", self.namespace(name))
        run("ip", "-n", self.namespace(name), "link", "set", "lo", "up")
        return self._wire(name, str(len(self.addresses)))

    def _wire(self, name: str, last: str) -> str:
        address, cable = f"{self._prefix}.{last}", f"{self._token}{last}"
        if name == HERE:
            run("ip", "link", "add", cable, "netns", self._router, "type", "veth", "peer", "name", f"{cable}h")
            self._up(("ip",), f"{cable}h", address, f"{self._prefix}.0/24")
        else:
            there = self.namespace(name)
            run("ip", "link", "add", cable, "netns", self._router, "type", "veth", "peer", "name", "eth0", "netns", there)
            self._up(("ip", "-n", there), "eth0", address, "default")
        self._up(("ip", "-n", self._router), cable, _GATEWAY, address)
        self.addresses[name] = address
        return address

    def _up(self, ip: tuple[str, ...], device: str, address: str, reached: str) -> None:
        run(*ip, "addr", "add", f"{address}/32", "dev", device)
        run(*ip, "link", "set", device, "up")
        via = () if address == _GATEWAY else ("via", _GATEWAY)
        run(*ip, "route", "add", reached, *via, "dev", device, *(("onlink",) if via else ()))

    def part(self, one: str, other: str) -> None:
        """Parts two members: no packet goes between them from now on. Twice is an error."""
        for rule in self._rules(one, other):
            run("ip", "-n", self._router, "rule", "add", *rule)
        self._parted.add((one, other))

    def join(self, one: str, other: str) -> None:
        for rule in self._rules(one, other):
            run("ip", "-n", self._router, "rule", "del", *rule)
        self._parted.discard((one, other))

    def join_all(self) -> None:
        for one, other in sorted(self._parted):
            self.join(one, other)

    def _rules(self, one: str, other: str) -> list[tuple[str, ...]]:
        ends = (self.addresses[one], self.addresses[other])
        return [("from", source, "to", to, "blackhole") for source, to in (ends, ends[::-1])]

    def reset(self, name: str) -> int:
        """Ends every connection of a member at once, both sides hear it; how many there were."""
        killed = run(*self.inside(name), "ss", "-KHtn", "state", "established")
        return len(killed.splitlines())

    def close(self) -> None:
        """Removes all namespaces; absent ones are no error, since making them may have failed in the middle."""
        for name in [*(each for each in self.addresses if each != HERE), "router"]:
            subprocess.run(
                ["ip", "netns", "del", self.namespace(name)], capture_output=True, timeout=TOOL_SECONDS_MAX, check=False
            )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
