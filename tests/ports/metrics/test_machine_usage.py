"""Usage of a machine, from files as Linux has them: limits of a container count, and what cannot be read counts as unused."""

from pathlib import Path

import pytest

from ports.metrics import machine_usage
from ports.metrics.machine_usage import LinuxUsage, MachineUse

MEGABYTE = 1 << 20


class Machine:
    """Files of a machine with four processors and 1000 MB, and a clock that is set by hand."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 100.0
        self.write("proc/meminfo", f"MemTotal: {1000 * 1024} kB\nMemFree: 1 kB\n")
        self.write("proc/self/statm", f"999999 {250 * MEGABYTE // machine_usage._PAGE} 0")
        self.ticks(busy=0, idle=0)
        self.interface("eth0", received=0, sent=0)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def ticks(self, busy: float, idle: float) -> None:
        """Seconds that all processors were busy, half of them in the system; `idle`: also waiting for disks."""
        half, rest = int(busy * machine_usage._TICKS / 2), int(idle * machine_usage._TICKS)
        self.write("proc/stat", f"cpu  {half} 0 {half} {rest} {rest} 0 0 0 0 0\ncpu0 1 1 1 1\n")

    def interface(self, name: str, received: int, sent: int, *, speed: str = "1000", is_hardware: bool = True) -> None:
        for file, value in (("statistics/rx_bytes", received), ("statistics/tx_bytes", sent), ("speed", speed)):
            self.write(f"net/{name}/{file}", f"{value}\n")
        if is_hardware:
            self.write(f"net/{name}/device/vendor", "")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setattr(machine_usage, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(machine_usage, "_NET", tmp_path / "net")
    monkeypatch.setattr(machine_usage, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("time.monotonic", lambda: found.now)
    return found


def test_shares_are_of_the_time_since_the_sample_before(machine: Machine) -> None:
    usage = LinuxUsage()
    machine.now += 10
    machine.ticks(busy=20, idle=20)
    machine.interface("eth0", received=125_000_000, sent=625_000_000)
    found = usage.sample()
    assert (found.cpu, found.memory, found.bandwidth_in, found.bandwidth_out) == pytest.approx((0.5, 0.25, 0.1, 0.5))
    machine.now += 10
    assert usage.sample() == MachineUse(0.0, 0.25, 0.0, 0.0)


def test_the_limits_of_a_container_are_the_whole(machine: Machine) -> None:
    machine.write("cgroup/cpu.max", "200000 100000")
    machine.write("cgroup/cpu.stat", "usage_usec 1000000\nuser_usec 5\n")
    machine.write("cgroup/memory.max", str(500 * MEGABYTE))
    usage = LinuxUsage()
    machine.now += 10
    machine.write("cgroup/cpu.stat", "usage_usec 11000000\nuser_usec 5\n")
    machine.ticks(busy=40, idle=0)
    found = usage.sample()
    assert (found.cpu, found.memory) == pytest.approx((0.5, 0.5))


def test_limits_beyond_the_machine_and_none_leave_the_machine_as_the_whole(machine: Machine) -> None:
    machine.write("cgroup/cpu.max", "max 100000")
    machine.write("cgroup/memory.max", str(1 << 60))
    usage = LinuxUsage()
    machine.now += 10
    machine.ticks(busy=20, idle=20)
    found = usage.sample()
    assert (found.cpu, found.memory) == pytest.approx((0.5, 0.25))


def test_a_network_speed_that_is_configured_counts_instead_of_that_of_the_interfaces(machine: Machine) -> None:
    usage = LinuxUsage(nic_gbps=10)
    machine.now += 1
    machine.interface("eth0", received=125_000_000, sent=0)
    assert usage.sample().bandwidth_in == pytest.approx(0.1)


def test_loopback_and_bridges_do_not_count(machine: Machine) -> None:
    usage = LinuxUsage()
    machine.now += 1
    machine.interface("lo", received=10**9, sent=10**9, is_hardware=False)
    assert usage.sample().bandwidth_in == 0.0


def test_an_interface_without_a_known_speed_leaves_the_network_unused(machine: Machine) -> None:
    machine.interface("eth0", received=0, sent=0, speed="-1")
    usage = LinuxUsage()
    machine.now += 1
    machine.interface("eth0", received=10**9, sent=10**9, speed="-1")
    assert usage.sample().bandwidth_out == 0.0


def test_counters_that_went_back_or_ran_ahead_give_shares_from_0_to_1(machine: Machine) -> None:
    machine.interface("eth0", received=10**12, sent=0)
    machine.ticks(busy=1000, idle=0)
    usage = LinuxUsage()
    machine.now += 1
    machine.ticks(busy=0, idle=0)
    machine.interface("eth0", received=0, sent=10**12)
    assert usage.sample() == MachineUse(0.0, 0.25, 0.0, 1.0)


def test_a_machine_without_such_files_is_unused(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PROC", "_NET", "_CGROUP"):
        monkeypatch.setattr(machine_usage, name, tmp_path / "nothing")
    assert LinuxUsage().sample() == MachineUse()
