"""Usage of this machine, or of a container's limits: processor, memory, network. From Linux's /proc and /sys.

Owns the counters of the sample before. A value that cannot be read counts as unused: no decision is to be made of it.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PROC, _NET, _CGROUP = Path("/proc"), Path("/sys/class/net"), Path("/sys/fs/cgroup")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Shares from 0 to 1: of the processors (all processes), of the memory (this process), of the network each way."""

    cpu: float = 0.0
    memory: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0


class MachineUsage(Protocol):
    """A port, so that what is decided by load can be tested without any."""

    def sample(self) -> MachineUse:
        """Since the sample before."""


@dataclass(frozen=True, slots=True)
class _Counters:
    at_seconds: float
    busy_seconds: float
    received: int
    sent: int


class LinuxUsage:
    """`nic_gbps`: of all network interfaces together; None: as the system says."""

    def __init__(self, nic_gbps: float | None = None) -> None:
        self._cpus = _cpu_limit()
        self._memory_bytes = _memory_limit()
        self._bytes_per_second = nic_gbps * 1e9 / 8 if nic_gbps else _nic_speed()
        self._before = self._counters()

    def sample(self) -> MachineUse:
        """Since the sample before; the first one since this was made."""
        before, now = self._before, self._counters()
        self._before = now
        seconds = max(now.at_seconds - before.at_seconds, 1e-6)
        network = self._bytes_per_second * seconds
        return MachineUse(
            _share(now.busy_seconds - before.busy_seconds, seconds * self._cpus),
            _share(_resident_bytes(), self._memory_bytes),
            _share(now.received - before.received, network),
            _share(now.sent - before.sent, network),
        )

    def _counters(self) -> _Counters:
        received, sent = _network_bytes()
        return _Counters(time.monotonic(), _busy_seconds(), received, sent)


def _share(used: float, whole: float) -> float:
    """Share in use; 0 where the whole is not known. Counters go back when an interface goes, or a limit of the container."""
    return min(1.0, max(0.0, used / whole)) if whole else 0.0


def _cpu_limit() -> float:
    quota, _, period = _text(_CGROUP / "cpu.max").partition(" ")
    cpus = float(os.cpu_count() or 1)
    return min(cpus, int(quota) / int(period)) if quota.isdigit() and period.isdigit() else cpus


def _memory_limit() -> int:
    limit = _text(_CGROUP / "memory.max")
    lines = _text(_PROC / "meminfo").splitlines()
    total = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal")), 0)
    return min(int(limit), total) if limit.isdigit() and total else total


def _busy_seconds() -> float:
    """Busy time of the container where it has a limit, otherwise of the machine: all but idle and waiting for disks."""
    if _text(_CGROUP / "cpu.max")[:1].isdigit():
        fields = dict(line.split() for line in _text(_CGROUP / "cpu.stat").splitlines() if len(line.split()) == 2)
        return int(fields.get("usage_usec", 0)) / 1e6
    ticks = [int(word) for word in _text(_PROC / "stat").partition("\n")[0].split()[1:9]]
    return (sum(ticks) - sum(ticks[3:5])) / _TICKS if ticks else 0.0


def _resident_bytes() -> int:
    words = _text(_PROC / "self" / "statm").split()
    return int(words[1]) * _PAGE if len(words) > 1 else 0


def _network_bytes() -> tuple[int, int]:
    received = sent = 0
    for interface in _interfaces():
        received += _number(interface / "statistics" / "rx_bytes")
        sent += _number(interface / "statistics" / "tx_bytes")
    return received, sent


def _nic_speed() -> float:
    """Bytes per second; 0: not known."""
    return sum(max(0, _number(interface / "speed")) * 1e6 / 8 for interface in _interfaces())


def _interfaces() -> Iterator[Path]:
    """Hardware interfaces: bytes over loopback and bridges go over none of them, or count twice."""
    try:
        names = sorted(os.listdir(_NET))
    except OSError:
        return
    yield from (_NET / name for name in names if (_NET / name / "device").exists())


def _number(path: Path) -> int:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
