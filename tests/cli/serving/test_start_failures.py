"""A server that cannot listen names the key of its configuration that says where."""

import errno
import socket
import subprocess
from pathlib import Path

import pytest

from bookie.server.settings import BookieServerSettings
from bookie.web.settings import BookieWebSettings
from broker.security.tls_settings import TlsSettings
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.server_settings import ServerSettings
from cli.serving.start_failures import start_failure
from tests.started_process import ROOT, free_port

SECONDS_MAX = 100.0
BROKER = (ServerSettings, TlsSettings)
BOOKIE = (BookieServerSettings, BookieWebSettings)


def configuration(*sets: str) -> Configuration:
    return load_configuration([], sets)


def taken(text: str) -> OSError:
    return OSError(errno.EADDRINUSE, text)


ASYNCIO = "error while attempting to bind on address ('127.0.0.1', {}): address already in use"
OURS = "the web server cannot listen on 127.0.0.1:{}: Address already in use"


@pytest.mark.parametrize(
    ("key", "text", "kinds"),
    [
        ("brokerServicePort", ASYNCIO, BROKER),
        ("webServicePort", OURS, BROKER),
        ("brokerServicePortTls", ASYNCIO, BROKER),
        ("webServicePortTls", ASYNCIO, BROKER),
        ("bookiePort", ASYNCIO, BOOKIE),
        ("httpServerPort", ASYNCIO, BOOKIE),
        ("prometheusStatsHttpPort", ASYNCIO, BOOKIE),
    ],
)
def test_a_port_that_is_taken_names_its_key(key: str, text: str, kinds: tuple[type, ...]) -> None:
    tls = ("tlsCertificateFilePath=c.pem", "tlsKeyFilePath=k.pem") if key.endswith("Tls") else ()
    found = start_failure(taken(text.format(24321)), configuration(f"{key}=24321", *tls), kinds)
    assert found.endswith(f": stop what listens there (`ss -ltnp` names it), or set {key} to another port")
    assert "127.0.0.1" in found


def test_two_keys_with_one_port_are_both_named() -> None:
    found = start_failure(taken(OURS.format(8080)), configuration("brokerServicePort=8080"), BROKER)
    assert "brokerServicePort and webServicePort have the same port" in found


def test_a_port_that_needs_a_privilege_is_told() -> None:
    found = start_failure(PermissionError(errno.EACCES, ASYNCIO.format(80)), configuration("webServicePort=80"), BROKER)
    assert "ports below 1024 need a privilege (CAP_NET_BIND_SERVICE): set webServicePort to a higher one" in found


def test_an_address_of_another_machine_names_the_keys_of_addresses() -> None:
    error = OSError(errno.EADDRNOTAVAIL, "cannot listen on 10.9.9.9:6650: Cannot assign requested address")
    assert "this machine has no such address: correct bindAddress" in start_failure(error, configuration(), BROKER)


def test_other_errors_are_told_as_they_are_with_their_file() -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "/nowhere/broker.conf")
    assert start_failure(missing, configuration(), BROKER) == "No such file or directory: /nowhere/broker.conf"
    assert start_failure(missing, None, BROKER) == "/nowhere/broker.conf: No such file or directory: correct --config"
    assert start_failure(ValueError("x"), None, BROKER) == "x"


@pytest.mark.parametrize("key", ["brokerServicePort", "webServicePort"])
def test_a_standalone_whose_port_is_taken_does_not_start_and_names_the_key(key: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"brokerServicePort": free_port(), "webServicePort": free_port(), key: other.getsockname()[1]}
        sets = [word for name, port in ports.items() for word in ("--set", f"{name}={port}")]
        command = [str(ROOT / "bin" / "pulsar"), "standalone", "--data-dir", str(tmp_path / "data"), *sets]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert ran.returncode == 1
    told = ran.stderr.splitlines()[-1]
    assert f"or set {key} to another port" in told
    assert str(ports[key]) in told
