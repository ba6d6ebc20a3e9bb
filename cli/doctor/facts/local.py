"""Facts of this machine and of a configuration file: clock, disk, limits, memory, ports.

Writes one small file and removes it.
"""

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.configuration.contradictions import contradictions
from cli.configuration.verdicts import BOOKIE, BROKER, STANDALONE
from cli.doctor.check import Facts
from cli.doctor.checks.machine import MemoryUse
from cli.doctor.checks.settings import PORTS
from cli.doctor.facts.network_probe import port_taken
from cli.doctor.facts.storage import nearest
from ports.settings import BadSetting, build_settings

_GROUPS = Path("/sys/fs/cgroup")
FSYNCS = 5
BLOCK = bytes(4096)


def machine_facts(data_directory: Path) -> Facts:
    """Facts of this machine alone; a directory that does not exist yet is judged by its nearest parent."""
    found: dict[str, Any] = {"year": time.gmtime().tm_year}
    missing: dict[str, str] = {}
    place = nearest(data_directory)
    readers: Mapping[str, Callable[[], Any]] = {
        "files": lambda: _limit(resource.RLIMIT_NOFILE),
        "processes": lambda: _limit(resource.RLIMIT_NPROC),
        "memory": memory_use,
        "load_per_cpu": lambda: os.getloadavg()[0] / (os.cpu_count() or 1),
        "compiled": _compiled,
    }
    for name, read in readers.items():
        try:
            found[name] = read()
        except (OSError, ValueError, KeyError) as error:
            missing[name] = f"cannot be read here: {error}"
    try:
        found["fsync_ms"], found["writable"] = fsync_ms(place), True
    except OSError as error:
        found["writable"], missing["fsync_ms"] = False, f"{place}: {error}"
    return Facts(found, missing)


def fsync_ms(place: Path) -> float:
    """The median of a few. OSError."""
    with tempfile.TemporaryFile(dir=place) as file:
        times = []
        for _ in range(FSYNCS):
            begun = time.perf_counter()
            file.write(BLOCK)
            file.flush()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def _limit(which: int) -> int:
    soft, _ = resource.getrlimit(which)
    return soft if soft != resource.RLIM_INFINITY else 1 << 40


def memory_use() -> MemoryUse:
    pairs = (line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    kilobytes = {key: int(value.split()[0]) for key, value in pairs}
    swapped = (kilobytes["SwapTotal"] - kilobytes["SwapFree"]) << 10
    return MemoryUse(kilobytes["MemAvailable"] << 10, swapped, *_memory_limit(kilobytes["MemTotal"] << 10))


def _memory_limit(machine: int) -> tuple[int | None, int]:
    """The nearest of the limits that hold for what is started here, and what of it is used; the machine's own is none."""
    found = [(soft, own_size()) for soft in [resource.getrlimit(resource.RLIMIT_AS)[0]] if soft != resource.RLIM_INFINITY]
    for limit, used in _group_files():
        text = limit.read_text().strip() if limit.is_file() else "max"
        if text.isdigit():
            found.append((int(text), _group_use(used)))
    near = [each for each in found if each[0] < machine]
    return min(near, key=lambda each: each[0] - each[1], default=(None, 0))


def _group_files() -> Iterator[tuple[Path, Path]]:
    """Limit and use of this process's control group, by version 2 and version 1; a container sees its own as the root."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            names, root = ("memory.max", "memory.current"), _GROUPS
        elif "memory" in controllers.split(","):
            names, root = ("memory.limit_in_bytes", "memory.usage_in_bytes"), _GROUPS / "memory"
        else:
            continue
        own = root / path.lstrip("/")
        place = own if (own / names[0]).is_file() else root
        yield place / names[0], place / names[1]


def _group_use(used: Path) -> int:
    """Without the pages of files, which the kernel gives back."""
    stat = used.parent / "memory.stat"
    lines = [line.split() for line in stat.read_text().splitlines()] if stat.is_file() else []
    cached = max((int(value) for key, value in lines if key in ("inactive_file", "total_inactive_file")), default=0)
    return max(0, int(used.read_text()) - cached)


def own_size() -> int:
    """Size of this process's address space, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _compiled() -> bool:
    import cython

    from wire.kernels import sends

    return bool(cython.compiled) or not str(sends.__file__).endswith(".py")


# ---- Settings


def settings_facts(settings: Mapping[str, str], file: Path | None, kind: str, *, server_runs: bool) -> Facts:
    """Facts of one configuration file; without a file the settings are empty, which are the defaults.

    `server_runs`: our own server has its ports then, and that is no fault; it has to have them.
    """
    found: dict[str, Any] = {"settings": settings, "kind": kind}
    missing: dict[str, str] = {}
    if file is None:
        missing = dict.fromkeys(("settings_errors", "contradictions", "silent_ports"), "no --config was given")
    else:
        found |= _report(file, kind)
    ports = {key: int(settings[key]) for key in PORTS if settings.get(key, "").isdigit() and settings[key] != "0"}
    host = settings.get("bindAddress", "")
    host = "127.0.0.1" if host in ("", "0.0.0.0", "localhost") else host
    open_ = {key: port for key, port in ports.items() if port_taken(port, host)}
    if not server_runs:
        found["taken_ports"] = tuple(f"{key}={port}" for key, port in open_.items())
        missing["silent_ports"] = "no server of these settings runs here"
        return Facts(found, missing)
    missing["taken_ports"] = "the server runs, and has its ports"
    if open_:
        found["silent_ports"] = tuple(f"{key}={port}" for key, port in ports.items() if key not in open_)
    return Facts(found, missing)


def kind_of_settings(settings: Mapping[str, str], file: Path | None) -> str:
    """The process that these settings are for: by the file's name, else by where they say that metadata is."""
    if file is None:
        return STANDALONE
    from cli.configuration.report import kind_of

    kind = kind_of(file.name)
    if kind != BROKER:
        return kind
    if settings.get("metadataServiceUri"):
        return BOOKIE
    in_cluster = any(settings.get(key) for key in ("metadataStoreUrl", "zookeeperServers"))
    return BROKER if in_cluster or "broker" in file.name else STANDALONE


def _report(file: Path, kind: str) -> dict[str, Any]:
    """The report of `interpulse config check`."""
    from cli.configuration.report import SETTINGS, report

    told = report(file.name, file.read_text(), (), kind)
    made: list[Any] = []
    for cls in SETTINGS[kind]:
        try:
            made.append(build_settings(cls, told.values))
        except BadSetting:
            continue  # it is among the errors
    return {
        "settings_errors": tuple(told.errors),
        "contradictions": tuple(each for each in contradictions(made, kind) if not each.ends_start),
    }
