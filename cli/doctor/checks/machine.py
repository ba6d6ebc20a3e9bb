"""The machine: clock, disk, fsync, limits, memory, load. Pure."""

from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, by_limits

SKEW_WARN_SECONDS, SKEW_FAIL_SECONDS = 2.0, 30.0
YEAR_MIN = 2025
FSYNC_WARN_MS, FSYNC_FAIL_MS = 25.0, 500.0
FILES_WARN, FILES_FAIL = 65_536, 1_024
PROCESSES_WARN = 4_096
MEMORY_WARN_BYTES, MEMORY_FAIL_BYTES = 512 << 20, 64 << 20
LOAD_WARN_PER_CPU = 2.0
SWAPPED_WARN_BYTES = 256 << 20


class MemoryUse(NamedTuple):
    """Memory in bytes."""

    available: int
    swap_used: int
    limit: int | None = None
    """Limit of the control group or of the address space of processes here; None: none below the memory of the machine."""
    used: int = 0
    """Used part of that limit."""


def clock_skew(skew_seconds: float) -> Verdict:
    evidence = f"the server's clock is {skew_seconds:+.1f} s from this one"
    return by_limits(abs(skew_seconds), SKEW_WARN_SECONDS, SKEW_FAIL_SECONDS, evidence)


def clock_plausible(year: int) -> Verdict:
    return Verdict(OK if year >= YEAR_MIN else FAIL, f"the clock says {year}")


def fsync_time(fsync_ms: float) -> Verdict:
    return by_limits(fsync_ms, FSYNC_WARN_MS, FSYNC_FAIL_MS, f"a write of 4 KiB with fsync takes {fsync_ms:.1f} ms (median)")


def disk_writable(writable: bool) -> Verdict:
    return Verdict(OK, "a file could be written") if writable else Verdict(FAIL, "no file could be written")


def open_files_limit(files: int) -> Verdict:
    level = FAIL if files < FILES_FAIL else WARN if files < FILES_WARN else OK
    return Verdict(level, f"{files} files may be open")


def processes_limit(processes: int) -> Verdict:
    return Verdict(WARN if processes < PROCESSES_WARN else OK, f"{processes} processes and threads are allowed")


def memory_available(memory: MemoryUse) -> Verdict:
    free = memory.available
    level = FAIL if free < MEMORY_FAIL_BYTES else WARN if free < MEMORY_WARN_BYTES else OK
    return Verdict(level, f"{free >> 20} MiB of memory available")


def memory_limit(memory: MemoryUse) -> Verdict:
    if memory.limit is None:
        return Verdict(OK, "no limit below the machine's memory")
    left = memory.limit - memory.used
    level = FAIL if left < MEMORY_FAIL_BYTES else WARN if left < MEMORY_WARN_BYTES else OK
    evidence = f"{memory.used >> 20} of {memory.limit >> 20} MiB that the limit of this container or shell allows are in use"
    return Verdict(level, evidence)


def swap_in_use(memory: MemoryUse) -> Verdict:
    return Verdict(WARN if memory.swap_used >= SWAPPED_WARN_BYTES else OK, f"{memory.swap_used >> 20} MiB are swapped out")


def load(load_per_cpu: float) -> Verdict:
    return Verdict(WARN if load_per_cpu >= LOAD_WARN_PER_CPU else OK, f"a load of {load_per_cpu:.1f} for each processor")


def kernels_compiled(compiled: bool) -> Verdict:
    return Verdict(OK, "the hot loops are compiled") if compiled else Verdict(WARN, "the hot loops run as plain Python")


CHECKS = (
    Check(
        "clock-skew",
        ("skew_seconds",),
        clock_skew,
        "two machines' clocks differ",
        "run an NTP client (chrony) on every machine of the cluster",
    ),
    Check(
        "clock-plausible",
        ("year",),
        clock_plausible,
        "the clock was never set",
        "set the clock; TTL, retention and certificates depend on it",
    ),
    Check(
        "disk-writable",
        ("writable",),
        disk_writable,
        "nothing can be written",
        "mount it read-write, and let the server's user own it",
    ),
    Check(
        "fsync-time",
        ("fsync_ms",),
        fsync_time,
        "a slow disk for the journal",
        "put journalDirectories on a faster disk: every acknowledged message waits",
    ),
    Check(
        "open-files-limit",
        ("files",),
        open_files_limit,
        "few files may be open",
        "raise nofile to 65536 (LimitNOFILE= in systemd, ulimits: in Compose, ulimit -n in a shell), and restart the server",
    ),
    Check(
        "processes-limit",
        ("processes",),
        processes_limit,
        "few processes and threads are allowed",
        "raise nproc (LimitNPROC= in systemd, ulimit -u)",
    ),
    Check(
        "memory-available",
        ("memory",),
        memory_available,
        "little memory is left",
        "stop something, or add memory, before the kernel kills a server",
    ),
    Check(
        "memory-limit",
        ("memory",),
        memory_limit,
        "a limit of memory is nearly reached",
        "raise the limit of memory (MemoryMax= in systemd, mem_limit in Compose, ulimit -v in a shell): a server beyond "
        "it is killed",
    ),
    Check(
        "swap-in-use",
        ("memory",),
        swap_in_use,
        "memory is swapped out",
        "add memory or lower vm.swappiness: swapped servers miss their sessions",
    ),
    Check(
        "load",
        ("load_per_cpu",),
        load,
        "the processors are overloaded",
        "move something away: a server that gets no processor loses its session",
    ),
    Check(
        "kernels-compiled",
        ("compiled",),
        kernels_compiled,
        "the hot loops are not compiled",
        "install a C compiler and run bin/prepare",
    ),
)
