"""One broker in a process of its own, ready when it is entered, gone without traces when it is left.

Owns that process, its data directory and its output. The server watches the process that started it, so both are gone too when
a test run is killed. Never imports the product, and needs the standard library alone.
"""

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from interpulse.programs import module_command, product_environment

SETTINGS: Mapping[str, str] = {"brokerServicePort": "0", "webServicePort": "0", "forceDeleteNamespaceAllowed": "true"}
"""Ports that the system chooses, and namespaces that a test may delete with all that is in them."""
READY_SECONDS_MAX = 60.0
END_SECONDS_MAX = 20.0
REQUEST_SECONDS_MAX = 20.0
POLL_SECONDS = 0.005
OUTPUT_CHARACTERS_MAX = 4000
TENANT = "public"


class BrokerDidNotStart(Exception):
    """The broker did not become ready; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Addresses of a broker, and a namespace in it."""

    service_url: str
    """URL for clients: pulsar://127.0.0.1:PORT."""
    admin_url: str
    """URL for the admin REST and `pulsar-admin --admin-url`: http://127.0.0.1:PORT."""
    process_id: int
    namespace: str = f"{TENANT}/default"

    def topic(self, name: str) -> str:
        """The full name of a persistent topic in this namespace."""
        return f"persistent://{self.namespace}/{name}"

    @contextlib.contextmanager
    def fresh_namespace(self, label: str) -> Iterator["Broker"]:
        """The same broker with a namespace of its own, which is deleted with its topics at the end."""
        readable = re.sub(r"[^\w-]+", "-", label).strip("-")[:80]
        namespace = f"{TENANT}/{readable}-{secrets.token_hex(4)}"
        self._ask("PUT", namespace)
        try:
            yield Broker(self.service_url, self.admin_url, self.process_id, namespace)
        finally:
            with contextlib.suppress(OSError):  # the test may have ended the broker; what is left goes with its process
                self._ask("DELETE", namespace)

    def _ask(self, method: str, namespace: str) -> None:
        query = "?force=true" if method == "DELETE" else ""
        request = urllib.request.Request(f"{self.admin_url}/admin/v2/namespaces/{namespace}{query}", method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
        opener.open(request, timeout=REQUEST_SECONDS_MAX).close()


class broker:  # noqa: N801  # `with broker() as started` reads as what it does
    """A standalone of this installation, for `with` and `async with`. `settings` are keys of `standalone.conf`."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {**SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._directory: Path | None = None

    def __enter__(self) -> Broker:
        """Start the server and wait until it is ready. BrokerDidNotStart."""
        self._launch()
        try:
            return self._until_ready()
        except BaseException:
            self._end()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    async def __aenter__(self) -> Broker:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._end)

    def _launch(self) -> None:
        if self._process is not None:
            raise RuntimeError("this broker runs already: make another one with broker()")
        self._directory = directory = Path(tempfile.mkdtemp(prefix="interpulse-"))
        words = ["standalone", "--throwaway", "--data-dir", str(directory), "--end-with", str(os.getpid())]
        words += ["--json-ready", str(directory / "ready.json")]
        words += [word for key, value in self._settings.items() for word in ("--set", f"{key}={value}")]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PULSAR_PREFIX_")}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the broker
        self._process = subprocess.Popen(
            module_command("cli", words),
            env=product_environment(clean),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests: they end the broker when they are done with it
        )

    def _until_ready(self) -> Broker:
        assert self._process is not None
        assert self._directory is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                told = json.loads((self._directory / "ready.json").read_text())
                return Broker(told["brokerServiceUrl"], told["webServiceUrl"], told["pid"])
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(POLL_SECONDS)
                raise BrokerDidNotStart(f"the broker ended with exit code {code} before it was ready:\n{self._last_output()}")
        raise BrokerDidNotStart(f"the broker was not ready after {READY_SECONDS_MAX:g} seconds:\n{self._last_output()}")

    def _last_output(self) -> str:
        assert self._output is not None
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-OUTPUT_CHARACTERS_MAX:]

    def _end(self) -> None:
        """End the process, by force if it does not end by itself, and delete what it left. Twice is fine."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._output is not None:
            self._output.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
