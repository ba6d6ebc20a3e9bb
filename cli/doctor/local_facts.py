"""Facts of this machine: clock, disk, limits, memory, directories. Writes one small file and removes it."""

import os
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cli.doctor.checks import Facts
from cli.doctor.data_checks import Directory
from cli.doctor.machine_checks import DiskUse, MemoryUse
from cli.doctor.settings_checks import FILES, PORTS

FSYNCS = 5
BLOCK = bytes(4096)
SETTLE_SECONDS = 0.2
_DIRECTORY_KEYS = ("journalDirectories", "journalDirectory", "ledgerDirectories", "indexDirectories")


def machine_facts(data_directory: Path) -> Facts:
    """What can be known without anybody's help; a directory that is not there yet is judged by its nearest parent."""
    found: dict[str, Any] = {"year": time.gmtime().tm_year}
    missing: dict[str, str] = {}
    place = next((each for each in (data_directory, *data_directory.absolute().parents) if each.is_dir()), Path("/"))
    readers: Mapping[str, Callable[[], Any]] = {
        "disk": lambda: disk_use(place),
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


def disk_use(place: Path) -> DiskUse:
    state = os.statvfs(place)
    size = state.f_frsize
    return DiskUse(str(place), state.f_blocks * size, state.f_bavail * size, state.f_files, state.f_favail)


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
    return MemoryUse(kilobytes["MemAvailable"] << 10, (kilobytes["SwapTotal"] - kilobytes["SwapFree"]) << 10)


def _compiled() -> bool:
    import cython

    from wire.kernels import sends

    return bool(cython.compiled) or not str(sends.__file__).endswith(".py")


def settings_facts(settings: Mapping[str, str], server_runs: bool) -> Facts:
    """Of one configuration. server_runs: our own server has its ports then, and that is no fault."""
    named = [settings[key] for key in FILES if settings.get(key)]
    found: dict[str, Any] = {
        "settings": settings,
        "unreadable_tls_files": tuple(name for name in named if not os.access(name, os.R_OK)),
    }
    missing = {}
    if server_runs:
        missing["taken_ports"] = "the server runs, and has its ports"
    else:
        ports = {key: int(settings[key]) for key in PORTS if settings.get(key, "").isdigit() and settings[key] != "0"}
        found["taken_ports"] = tuple(f"{key}={port}" for key, port in ports.items() if port_taken(port))
    return Facts(found, missing)


def port_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(SETTLE_SECONDS)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def directory_facts(data_directory: Path, settings: Mapping[str, str]) -> Facts:
    """Of the directories that the settings name, or of those below the data directory that have a VERSION file.

    Apache's bookie has it, and its journal files (.txn), in `current` below; ours at the top (.journal).
    """
    named = [each for key in _DIRECTORY_KEYS for each in settings.get(key, "").split(",") if each]
    paths = [Path(each) for each in named] or sorted({_directory_of(path) for path in data_directory.glob("**/VERSION")})
    there = [path for path in paths if path.is_dir()]
    if not there:
        return Facts({}, dict.fromkeys(("directories", "journal_files"), f"no bookie's directories in {data_directory}"))
    journals = sum(1 for path in there for pattern in ("current/*.txn", "*.journal") for _ in path.glob(pattern))
    return Facts({"directories": tuple(_directory(path) for path in there), "journal_files": journals}, {})


def _directory_of(version: Path) -> Path:
    return version.parent.parent if version.parent.name == "current" else version.parent


def _directory(path: Path) -> Directory:
    versions = [each for each in (path / "current" / "VERSION", path / "VERSION") if each.is_file()]
    cookie = versions[0].read_text(errors="replace") if versions else None
    return Directory(str(path), cookie, path.stat().st_uid == os.geteuid())
