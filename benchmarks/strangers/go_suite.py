"""The tests of Apache's Go client, out of the Go module proxy, against a standalone with the settings of their own CI.

The module's copy gets other ports; nothing else in it is changed. Its certificates, tokens, passwords and standalone.conf
are used.
Never in here: verdicts (verdicts.py), and why a test is known to fail (go_known.py).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.strangers.go_known import KNOWN
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict
from tests.clients.server_process import PORT_KEYS, ServerProcess
from tests.started_process import ROOT, free_port
from tests.toolchain import FETCH_SECONDS_MAX, run_tool

MODULE = "github.com/apache/pulsar-client-go@v0.19.0"
PACKAGES = "./pulsar/..."
THEIR_PORTS = (6650, 8080, 6651, 8443)
PORT_SETTINGS = (*PORT_KEYS, "brokerServicePortTls", "webServicePortTls")
OUTCOMES = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}
NOTE_LINES_MAX = 3
ROUNDS_MAX = 10
_PORT = re.compile(r"(localhost|127\.0\.0\.1):(6650|8080|6651|8443)\b")
_TROUBLE = re.compile(r"Error:|Error Trace|panic:|_test\.go:\d+:|skip", re.IGNORECASE)
_PREPARATION = (
    "tenants update public -r anonymous",
    "namespaces grant-permission public/default --actions produce,consume --role anonymous",
    "tenants create private",
    "namespaces create private/auth",
    "namespaces grant-permission private/auth --actions produce,consume --role token-principal",
)
"""As scripts/pulsar-test-service-start.sh of the module does."""


def run(scratch: Path, pattern: str, seconds_max: float) -> Report:
    """Run the tests whose names match the pattern, all when it is empty."""
    ports = tuple(free_port() for _ in THEIR_PORTS)
    module = _module(scratch, dict(zip(THEIR_PORTS, ports, strict=True)))
    with _server(scratch / "server", module, ports):
        events = _tested(module, pattern, seconds_max, scratch / "go-test.json")
    return Report(f"pulsar-client-go {MODULE.rpartition('@')[2]}", tuple(_verdicts(events)), KNOWN)


def _module(scratch: Path, ports: dict[int, int]) -> Path:
    """Copy the module out of the cache, whose files are read-only; its tests and the default of its admin get our ports."""
    found = json.loads(run_tool(["go", "mod", "download", "-json", MODULE], scratch, FETCH_SECONDS_MAX))
    module = scratch / "pulsar-client-go"
    shutil.copytree(found["Dir"], module, copy_function=shutil.copyfile)
    for path in (module, *(each for each in module.rglob("*") if each.is_dir())):
        path.chmod(0o755)
    for path in (*(module / "pulsar").glob("*_test.go"), *(module / "pulsaradmin").rglob("*.go")):
        path.write_text(_PORT.sub(lambda at: f"{at[1]}:{ports[int(at[2])]}", path.read_text()))
    return module


@contextmanager
def _server(directory: Path, module: Path, ports: tuple[int, ...]) -> Iterator[None]:
    theirs = module / "integration-tests"
    text = (theirs / "conf" / "standalone.conf").read_text()
    directory.mkdir(parents=True)
    configuration = directory / "standalone.conf"
    configuration.write_text(text.replace("/pulsar/certs", f"{theirs}/certs").replace("/pulsar/tokens", f"{theirs}/tokens"))
    places = (f"{key}={port}" for key, port in zip(PORT_SETTINGS, ports, strict=True))
    with ServerProcess(
        directory, (*places, "bindAddress=127.0.0.1", f"basicAuthConf=file://{theirs}/conf/.htpasswd")
    ) as server:
        server.configuration, server.ports = str(configuration), ()
        ready = server.start()
        _prepare(ready.web_url, (theirs / "tokens" / "admin-token").read_text().strip())
        yield


def _prepare(web_url: str, token: str) -> None:
    login = ["--auth-plugin", "org.apache.pulsar.client.impl.auth.AuthenticationToken", "--auth-params", f"token:{token}"]
    for words in _PREPARATION:
        run_tool([str(ROOT / "bin" / "pulsar-admin"), "--admin-url", web_url, *login, *words.split()], ROOT, 60.0)


def _tested(module: Path, pattern: str, seconds_max: float, log: Path) -> list[dict[str, str]]:
    """Events of `go test -json`. A panic ends all tests of its package: what it left is run again without what has been run."""
    events: list[dict[str, str]] = []
    deadline = time.monotonic() + seconds_max
    for _ in range(ROUNDS_MAX):
        seen = {event["Test"].partition("/")[0] for event in events if "Test" in event}
        found = _round(module, pattern, seen, max(1.0, deadline - time.monotonic()), log)
        events += found
        if not any("panic:" in event.get("Output", "") for event in found) or time.monotonic() > deadline:
            break
    return events


def _round(module: Path, pattern: str, seen: set[str], seconds_max: float, log: Path) -> list[dict[str, str]]:
    """Events of one run, which the log keeps too. Go ends its tests itself; twice the time is for compiling."""
    command = ["go", "test", "-json", "-count=1", "-p=1", f"-timeout={seconds_max:.0f}s", PACKAGES]
    command += ["-run", pattern] if pattern else []
    command += ["-skip", f"^({'|'.join(sorted(seen))})$"] if seen else []
    with log.open("a") as out:
        began = out.tell()
        tests = subprocess.Popen(command, cwd=module, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            tests.wait(2 * seconds_max)
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()
    return [json.loads(line) for line in log.read_bytes()[began:].decode().splitlines() if line.startswith("{")]


def _verdicts(events: list[dict[str, str]]) -> Iterator[Verdict]:
    """One for each test, not for its parts. A test that began and never ended has failed."""
    notes: dict[str, list[str]] = {}
    outcomes: dict[str, str] = {}
    for event in events:
        if "Test" not in event:
            continue
        name = event["Test"].partition("/")[0]
        outcomes.setdefault(name, FAILED)
        if event["Action"] == "output" and _TROUBLE.search(event["Output"]):
            notes.setdefault(name, []).append(event["Output"].strip())
        elif event["Action"] in OUTCOMES and event["Test"] == name:
            outcomes[name] = OUTCOMES[event["Action"]]
    for name, outcome in outcomes.items():
        note = "; ".join(notes.get(name, ["did not end"])[-NOTE_LINES_MAX:])
        yield Verdict(name, outcome, "" if outcome == PASSED else note)
