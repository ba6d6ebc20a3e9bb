"""Every connection that fails is told with its address, what happened, the likely cause and the remedy, in two sentences.

By real sockets where what they do decides: what our tools say to a server that speaks another protocol, or TLS, or nothing.
"""

import base64
import json
import socket
from pathlib import Path

import pytest

from cli.admin.tool import main as admin
from cli.client.__main__ import main as client
from cli.connection_advice import BINARY, HTTP, credentials_refused, name_advice, not_reached
from cli.perf.__main__ import main as perf
from tests.cli.small_servers import listening, says, self_signed, with_tls
from tests.started_process import free_port
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandError, ServerError

BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x46"


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "client.conf").write_text("")
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(tmp_path / "client.conf"))


def said(capsys: pytest.CaptureFixture[str], url: str, *more: str) -> str:
    """Text of the tool for this address on stderr."""
    capsys.readouterr()
    if url.startswith("http"):
        code = admin(["--admin-url", url, *more, "tenants", "list"])
    else:
        code = client(["--url", url, *more, "produce", "t", "-m", "x"])
    assert code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("scheme", ["pulsar", "pulsar+ssl", "http", "https"])
def test_a_refused_connection_is_reported_with_how_to_start_a_server(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}"
    found = said(capsys, url)
    assert f"{url}: connection refused: nothing listens there. Start the server (interpulse standalone)" in found
    assert ("--admin-url" if scheme.startswith("http") else "--url") in found


def test_each_of_several_addresses_is_named_when_none_answers(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = free_port(), free_port()
    found = said(capsys, f"pulsar://127.0.0.1:{first},127.0.0.1:{second}")
    assert f"none of 2 addresses answers: pulsar://127.0.0.1:{first}: connection refused" in found
    assert f"; pulsar://127.0.0.1:{second}: connection refused" in found


@pytest.mark.parametrize("scheme", ["pulsar", "http"])
def test_a_name_that_dns_does_not_know_is_named(
    scheme: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert "the name nowhere.invalid is not known to DNS" in said(capsys, f"{scheme}://nowhere.invalid:6650")


def test_a_client_at_the_web_port_is_told_which_port_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(says(BAD_REQUEST)) as port:
        found = said(capsys, f"pulsar://127.0.0.1:{port}")
    assert f"pulsar://127.0.0.1:{port}: the server answers in HTTP: this is its web port (webServicePort" in found
    assert "brokerServicePort" in found


def test_pulsar_admin_at_the_binary_port_is_told_which_port_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(says(b"")) as port:
        found = said(capsys, f"http://127.0.0.1:{port}")
    assert "closed the connection without an answer: the port may be one for Pulsar's binary protocol" in found
    error = encode(
        BaseCommand(type=BaseCommand.ERROR, error=CommandError(request_id=1, error=ServerError.UnknownError, message="no"))
    )
    with listening(says(error)) as port:
        assert "does not speak HTTP" in said(capsys, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("scheme", ["pulsar", "http"])
def test_without_tls_at_a_port_with_tls_the_other_scheme_is_named(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(says(TLS_ALERT)) as port:
        found = said(capsys, f"{scheme}://127.0.0.1:{port}")
    assert "the server speaks TLS on this port. Write " in found
    assert ("pulsar+ssl://" if scheme == "pulsar" else "https://") in found


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
@pytest.mark.parametrize("answer", [b"", BAD_REQUEST])
def test_tls_at_a_port_without_it_is_told(scheme: str, answer: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(says(answer)) as port:
        found = said(capsys, f"{scheme}://127.0.0.1:{port}")
    plain = "pulsar://" if scheme == "pulsar+ssl" else "http://"
    assert "no TLS on this port (" in found or "the connection was reset" in found
    assert plain in found or "Look at the port" in found


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
def test_a_certificate_of_an_authority_that_is_not_trusted_is_told_with_the_key_to_set(
    scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(with_tls(*self_signed(tmp_path), says(b""))) as port:
        found = said(capsys, f"{scheme}://127.0.0.1:{port}")
    assert "is signed by nobody who is trusted here" in found
    assert "tlsTrustCertsFilePath" in found


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
def test_a_certificate_that_has_expired_is_told(scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, key = self_signed(tmp_path, days=-1)
    trust = "--tls-trust-cert-path" if scheme == "https" else "--tlsTrustCertsFilePath"
    with listening(with_tls(certificate, key, says(b""))) as port:
        found = said(capsys, f"{scheme}://127.0.0.1:{port}", trust, str(certificate))
    assert "the server's certificate has expired" in found


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
def test_a_certificate_for_another_host_is_told(
    scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client.conf").write_text("tlsEnableHostnameVerification=true\n")
    certificate, key = self_signed(tmp_path, host="broker.example")
    trust = "--tls-trust-cert-path" if scheme == "https" else "--tlsTrustCertsFilePath"
    with listening(with_tls(certificate, key, says(b""))) as port:
        found = said(capsys, f"{scheme}://127.0.0.1:{port}", trust, str(certificate))
    assert "the server's certificate is not for 127.0.0.1" in found


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ((), "the server wants credentials, and none were given"),
        (("--auth-plugin", "token", "--auth-params", "token:x"), "the credentials are wrong, expired, or of another kind"),
    ],
)
def test_credentials_that_are_missing_or_refused_are_told(
    options: tuple[str, ...], cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = CommandError(request_id=1, error=ServerError.AuthenticationError, message="Token expired.")
    with listening(says(encode(BaseCommand(type=BaseCommand.ERROR, error=error)))) as port:
        found = said(capsys, f"pulsar://127.0.0.1:{port}", *options)
    assert f"refused: Token expired: {cause}" in found
    assert "--auth-plugin and --auth-params" in found


def test_a_time_out_says_how_long_was_waited() -> None:
    found = not_reached("pulsar://10.0.0.1:6650", TimeoutError("timed out"), BINARY, 10.0)
    assert found.startswith("pulsar://10.0.0.1:6650: no answer in 10 s: the host is down, a firewall drops")


def test_a_password_in_an_address_is_not_shown() -> None:
    found = not_reached("http://me:secret@host:8080", ConnectionRefusedError(111, "refused"), HTTP)
    assert "secret" not in found
    assert found.startswith("http://host:8080: connection refused")


def test_perf_tells_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert perf(["produce", "t", "-u", f"pulsar://127.0.0.1:{free_port()}"]) == 1
    assert "connection refused: nothing listens there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("Namespace not found: public/nope", "namespaces list"),
        ("Tenant does not exist", "tenants list"),
        ("Topic persistent://a/b/c not found", "topics list"),
        ("Invalid topic name: x", "persistent://TENANT/NAMESPACE/NAME"),
        ("nobody is not authorized: topic LOOKUP t", "grant-permission"),
        ("Topic was already terminated", ""),
    ],
)
def test_a_refused_name_is_answered_with_the_command_that_helps(reason: str, remedy: str) -> None:
    found = name_advice(reason)
    assert remedy in found if remedy else found == ""


def test_every_text_is_two_sentences_at_most() -> None:
    texts = [
        not_reached("pulsar://h:1", ConnectionRefusedError(111, "refused"), BINARY),
        not_reached("http://h:1", TimeoutError(), HTTP, 5.0),
        credentials_refused("pulsar://h:1", "no", "", 0.0),
    ]
    assert all(text.count(". ") <= 1 for text in texts)


def test_a_token_that_has_expired_is_told_with_its_time() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "me", "exp": 1_000_000_000}).encode()).decode().rstrip("=")
    told = credentials_refused("pulsar://h:1", "Failed to authenticate", f"e30.{claims}.x", 1_000_000_001.0)
    assert "the token expired at 2001-09-09T01:46:40Z; interpulse tokens create makes another" in told
    assert "expired at" not in credentials_refused("pulsar://h:1", "no", f"e30.{claims}.x", 999_999_999.0)
    assert "expired at" not in credentials_refused("pulsar://h:1", "no", "a.b.c", 2e9)


def test_pulsar_admin_without_credentials_is_told_how_to_give_them(capsys: pytest.CaptureFixture[str]) -> None:
    body = b'{"reason":"Authentication required"}'
    answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with listening(says(answer)) as port:
        found = said(capsys, f"http://127.0.0.1:{port}")
    assert (
        f"http://127.0.0.1:{port}: refused: Authentication required: the server wants credentials, and none were given" in found
    )
    assert "--auth-plugin and --auth-params" in found


@pytest.mark.parametrize("url", ["pulsar://127.0.0.1", "http://127.0.0.1"])
def test_a_token_file_that_is_not_there_is_named_with_its_option(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(says(b"")) as port:
        found = said(capsys, f"{url}:{port}", "--auth-plugin", "token", "--auth-params", "file:///no/where")
    assert "authParams: the token in /no/where cannot be read" in found
