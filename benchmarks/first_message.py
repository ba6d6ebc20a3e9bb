"""Time from a wheel to the first message: `.venv/bin/python -m benchmarks.first_message [--times N]`.

Makes a new environment as a stranger does, and measures in it: `pip install` of the wheel with Apache's client, then N times
each `interpulse standalone` until Apache's client has received what it published, and the broker of `interpulse.testing` until
it is ready, until it has a namespace for a test, and until it is gone. Prints one JSON line; times in seconds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.started_process import ROOT, free_port

STANDALONE = """
import subprocess, sys, time, pulsar
start = time.perf_counter()
port, web, directory = sys.argv[1:]
command = [sys.executable, "-m", "interpulse", "standalone", "--throwaway", "--data-dir", directory]
command += ["--set", f"brokerServicePort={port}", "--set", f"webServicePort={web}", "--json-ready", directory + ".ready"]
server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
import os
while not os.path.exists(directory + ".ready"):
    time.sleep(0.001)
ready = time.perf_counter() - start
client = pulsar.Client(f"pulsar://127.0.0.1:{port}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe("first", "me")
client.create_producer("first").send(b"hello")
assert consumer.receive(timeout_millis=10_000).data() == b"hello"
received = time.perf_counter() - start
client.close()
server.terminate()
server.wait()
print(ready, received)
"""
FIXTURE = """
import time
from interpulse.testing import broker
times = [time.perf_counter()]
with broker() as started:
    times.append(time.perf_counter())
    with started.fresh_namespace("test"):
        times.append(time.perf_counter())
    ending = time.perf_counter()
times.append(time.perf_counter())
print(times[1] - times[0], times[2] - times[1], times[3] - ending)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measured(Path(scratch), times)))


def measured(scratch: Path, times: int) -> dict[str, float]:
    """Medians; the installation is done once."""
    build = timed([str(ROOT / "bin" / "build"), str(scratch / "dist")])
    make = timed([sys.executable, "-m", "venv", str(scratch / "venv")])
    python = str(scratch / "venv" / "bin" / "python")
    (wheel,) = (scratch / "dist").glob("*.whl")
    install = timed([python, "-m", "pip", "install", "--quiet", str(wheel), "pulsar-client"])
    standalone = [
        numbers(python, STANDALONE, str(free_port()), str(free_port()), str(scratch / f"data{n}")) for n in range(times)
    ]
    fixture = [numbers(python, FIXTURE) for _ in range(times)]
    names = ("standalone_ready", "first_message", "fixture_ready", "fresh_namespace", "fixture_gone")
    columns = [*zip(*standalone, strict=True), *zip(*fixture, strict=True)]
    found = {name: round(statistics.median(column), 4) for name, column in zip(names, columns, strict=True)}
    return {"build": round(build, 1), "new_environment": round(make, 1), "pip_install": round(install, 1), **found}


def timed(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def numbers(python: str, program: str, *words: str) -> list[float]:
    """The seconds that a program in the new environment prints."""
    done = subprocess.run([python, "-c", program, *words], check=True, capture_output=True, text=True)
    return [float(each) for each in done.stdout.split()]


if __name__ == "__main__":
    main()
