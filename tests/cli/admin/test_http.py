"""pulsar-admin as a process and its HTTP: redirects, credentials, errors, several addresses, and what it does not import."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.admin.http import AdminConnection, Refused, Unreachable
from cli.admin.request import Request
from cli.client_configuration import ClientConfiguration, ConfigurationError, parse_client_configuration
from tests.http_server import QuietHandler, serving

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 120.0


class Handler(QuietHandler):
    """Moves /admin/v2/moved to /admin/v2/owner, refuses /admin/v2/refused, answers everything else with what was asked."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path.endswith("/moved"):
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/admin/v2/owner?authoritative=true")  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        refused = self.path.endswith("/refused")
        asked = {"method": self.command, "path": self.path, "body": body, "auth": self.headers.get("Authorization")}
        answer = json.dumps({"reason": "because"} if refused else asked).encode()
        self.send_response(409 if refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the names are http.server's


@pytest.fixture
def url() -> Iterator[str]:
    with serving(Handler) as found:
        yield found


@pytest.fixture
def connection(url: str) -> Iterator[AdminConnection]:
    made = AdminConnection(ClientConfiguration(web_service_url=url, auth_plugin="token", auth_params="token:abc"), 30.0)
    yield made
    made.close()


def test_a_redirect_is_followed_with_method_body_and_credentials(connection: AdminConnection) -> None:
    asked = json.loads(connection.ask(Request("POST", "/admin/v2/moved", b"5")).body)
    assert asked == {"method": "POST", "path": "/admin/v2/owner?authoritative=true", "body": "5", "auth": "Bearer abc"}


def test_the_reason_of_a_refusal_is_told(connection: AdminConnection) -> None:
    with pytest.raises(Refused, match="because"):
        connection.ask(Request("GET", "/admin/v2/refused"))


def test_one_answering_address_of_several_is_enough(url: str) -> None:
    several = AdminConnection(ClientConfiguration(web_service_url=f"http://127.0.0.1:1,{url.removeprefix('http://')}"), 30.0)
    assert several.ask(Request("GET", "/admin/v2/clusters")).status == 200
    several.close()
    nobody = AdminConnection(ClientConfiguration(web_service_url="http://127.0.0.1:1"), 30.0)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        nobody.ask(Request("GET", "/admin/v2/clusters"))


def test_the_configuration_is_apaches_and_keystores_are_refused() -> None:
    read = parse_client_configuration(
        "# x\nwebServiceUrl=http://a:1\nauthPlugin=token\ntlsAllowInsecureConnection=true\nother=1\n"
    )
    assert read == ClientConfiguration(web_service_url="http://a:1", auth_plugin="token", tls_allow_insecure=True)
    with pytest.raises(ConfigurationError, match="PEM"):
        parse_client_configuration("useKeyStoreTls=true\n")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "bin" / "pulsar-admin"), *words], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def test_the_command_prints_to_stdout_and_fails_on_stderr_with_exit_code_1(url: str) -> None:
    done = run("--admin-url", url, "brokers", "healthcheck")
    assert (done.returncode, done.stderr) == (0, "")
    refused = run("--admin-url", url, "tenants", "get", "refused")
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "because\n\nReason: because\n")
    assert "not offered here: there is no functions worker" in run("functions", "list").stderr
    nobody = run("--admin-url", "http://127.0.0.1:1", "tenants", "list")
    assert nobody.returncode == 1
    assert "127.0.0.1:1" in nobody.stderr


def test_the_admin_tool_starts_without_slow_imports() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import cli.admin.tool as t; t.understood(['topics', 'stats', 'x']);"
        "import cli.admin.http; print(sorted({'asyncio', 'dataclasses', 'argparse', 'logging', 'inspect'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True, timeout=SECONDS_MAX, check=True
    )
    assert ran.stdout.strip() == "[]"
