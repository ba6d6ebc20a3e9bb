"""Apache's Go and Java clients, unmodified, with a token over TLS: allowed, without permission, and unknown."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import need_openssl
from tests.clients.standalone.test_secured_server import TOPIC, Site, grant, ours
from tests.toolchain import maven_classpath, run_tool

pytestmark = [pytest.mark.clients, need_openssl, pytest.mark.timeout(900)]

HERE = Path(__file__).parent.parent
SECONDS_MAX = 400  # on a machine that compiles the Go client for the first time


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(tmp_path_factory.mktemp("secured"))
    with found.process:
        found.start()
        grant(found, "alice")
        yield found


def environment(site: Site, language: str) -> dict[str, str]:
    return {
        "URL": site.tls_url,
        "TRUST": str(site.authority.certificate),
        "TOPIC": f"{TOPIC}-{language}",
        "ALLOWED": ours("alice"),
        "DENIED": ours("mallory"),
        "UNKNOWN": ours("alice", exp=1),
    }


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
def test_the_go_client_is_let_in_and_refused(site: Site) -> None:
    """The Go client tells the reason of an unknown token in its log alone; its error says that there was no connection."""
    output = run_tool(["go", "run", "./secured"], HERE / "go", SECONDS_MAX, environment(site, "go"))
    found = json.loads(output.splitlines()[-1])
    assert found["allowed"] == "there and back"
    assert "AuthorizationError" in found["denied"]
    assert "connection error" in found["unknown"]
    assert "Failed to authenticate" in found["log"]


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
def test_the_java_client_is_let_in_and_refused_with_its_own_errors(site: Site, tmp_path: Path) -> None:
    classpath = maven_classpath(HERE / "java_admin" / "pom.xml", tmp_path)
    options = ["-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={HERE / 'java_admin' / 'log4j2.properties'}"]
    command = ["java", *options, "-cp", classpath, str(HERE / "java_secured" / "Secured.java")]
    output = run_tool(command, tmp_path, SECONDS_MAX, environment(site, "java"))
    assert "allowed=there and back" in output
    assert "denied=AuthorizationException" in output
    assert "unknown=AuthenticationException" in output
