"""Other languages' tools, for tests: run within a bound, alone where they share a cache, ended with all their children."""

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
"""Build directory of this checkout alone: another checkout has other sources."""
FETCH_SECONDS_MAX = 900.0
OUTPUT_CHARACTERS_MAX = 20_000
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java options for programs that run for seconds: much compilation would take longer than it saves."""

_classpaths: dict[Path, str] = {}


def run_tool(command: Sequence[str], directory: Path, seconds_max: float, environment: Mapping[str, str] | None = None) -> str:
    """Output of the tool. AssertionError with its end when the tool fails, or is not done in time."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={"MAVEN_OPTS": " ".join(QUICK_JAVA), **os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"{command[0]}: not done in {seconds_max} s\n{output[-OUTPUT_CHARACTERS_MAX:]}") from None
    except BaseException:  # the test's own time limit, or Ctrl-C
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, f"{command[0]}: exit code {process.returncode}\n{output[-OUTPUT_CHARACTERS_MAX:]}"
    return output


@contextlib.contextmanager
def fetching() -> Iterator[None]:
    """Alone with Maven's repository, which two must not fill at a time; the time limit of the test stands still meanwhile.

    On a machine that begins with nothing, the test that comes first would pay for all of them. The fetch inside has a time
    limit of its own.
    """
    directory = Path.home() / ".cache" / "interpulse"
    directory.mkdir(parents=True, exist_ok=True)
    with off_the_clock(), (directory / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def off_the_clock() -> Iterator[None]:
    """The time limit of the test stands still: for what has a bound of its own."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)  # pytest-timeout's
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


def go_tests(package: Path, tags: str, scratch: Path) -> Path:
    """The package's tests as a program. With an empty cache a machine compiles for minutes, and fetches before that."""
    built = scratch / f"{package.name}.test"
    command = ["go", "test", "-c", "-tags", tags, "-o", str(built), "."]
    with off_the_clock():
        run_tool(command, package, FETCH_SECONDS_MAX)
    return built


def maven_classpath(pom: Path, scratch: Path) -> str:
    """Class path of the libraries that the pom names, fetched where they are missing. Maven is asked once in a run."""
    if pom not in _classpaths:
        found = scratch / "classpath"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={found}"]
        with fetching():
            run_tool(["mvn", "-B", "-ntp", "-q", "-f", str(pom), *goal], scratch, FETCH_SECONDS_MAX)
        _classpaths[pom] = found.read_text().strip()
    return _classpaths[pom]


def run_bounded(
    command: Sequence[str], directory: Path, log: Path, seconds_max: float, environment: Mapping[str, str] | None = None
) -> None:
    """Runs the command in the directory, with its output in the log, and ends it after so many seconds; the log says so then.

    `environment` takes the place of this process's own.
    """
    with log.open("w") as out:
        running = subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            running.wait(seconds_max)
        except subprocess.TimeoutExpired:
            out.write(f"ended after {seconds_max:.0f} s\n")
        finally:
            running.kill()
            running.wait()
