"""Faults of one server and of the way to it: a standalone that is dead, hangs, is behind TLS, refuses, has another clock."""

import datetime
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from email.utils import format_datetime, parsedate_to_datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.doctor_faults.credentials import DAY, SECRET, Pair, Signer, token
from benchmarks.doctor_faults.fault import WARN, Fault, Inject, Injected
from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import free_port

SKEW = datetime.timedelta(seconds=90)


def faults() -> list[Fault]:
    """Each on a server of its own."""
    server, start = "server-answers", ("start the broker", "log")
    return [
        Fault("control: a standalone", _sound),
        Fault("control: a standalone behind TLS alone", _tls_alone),
        Fault("dead broker: killed", _killed, server, remedy=start),
        Fault("dead broker: never started", _never_started, server, remedy=start),
        Fault("hanging broker: stopped by SIGSTOP", _hanging, server, remedy=("stands still", "kill -CONT")),
        Fault("--admin-url with the port of the binary protocol", _binary_port, server, remedy=("webServicePort",)),
        Fault("https:// on the port of http://", _https_on_http, server, remedy=("http://",)),
        Fault("http:// on the port of https://", _http_on_https, server, remedy=("https://",)),
        Fault("a token that the broker refuses", _refused, server, remedy=("authParams", "tokens validate")),
        Fault("certificate that is shown has expired", _shown(ends=-DAY), "certificate-time", remedy=("renew",)),
        Fault("certificate that is shown is for another host", _shown(hosts=("other.example",)), "certificate-host", WARN,
              remedy=("127.0.0.1",)),
        Fault("authority of the server not trusted by client.conf", _untrusted, server, remedy=("tlsTrustCertsFilePath",)),
        Fault("TLS port of the settings is closed", _closed_port, "ports-listening", remedy=("restart the server",)),
        Fault("a clock that is 90 s off", _skewed, "clock-skew", remedy=("NTP",)),
        Fault("a clock that is 10 s off", _skewed_a_little, "clock-skew", WARN, ("NTP",)),
        Fault("a second standalone on a port that is taken", _port_taken, "ports-free", remedy=("ss -ltnp",)),
    ]  # fmt: skip


def asked(ready: Ready, own: Path, *more: str | Path) -> tuple[str | Path, ...]:
    return ("--admin-url", ready.web_url, "--data-dir", own / "data", *more)


@contextmanager
def started(own: Path, *settings: str) -> Iterator[tuple[ServerProcess, Ready]]:
    with ServerProcess(own, settings) as server:
        yield server, server.start()


@contextmanager
def _sound(own: Path) -> Iterator[Injected]:
    with started(own) as (_, ready):
        yield Injected(asked(ready, own))


@contextmanager
def _killed(own: Path) -> Iterator[Injected]:
    with started(own) as (server, ready):
        server.kill()
        yield Injected(asked(ready, own), (ready.web_url,))


@contextmanager
def _never_started(own: Path) -> Iterator[Injected]:
    url = f"http://127.0.0.1:{free_port()}"
    yield Injected(("--admin-url", url, "--data-dir", own), (url,))


@contextmanager
def _hanging(own: Path) -> Iterator[Injected]:
    with started(own) as (_, ready):
        os.kill(ready.pid, signal.SIGSTOP)
        try:
            yield Injected(asked(ready, own), (ready.web_url,))
        finally:
            os.kill(ready.pid, signal.SIGCONT)


@contextmanager
def _binary_port(own: Path) -> Iterator[Injected]:
    with started(own) as (_, ready):
        url = ready.broker_url.replace("pulsar://", "http://")
        yield Injected(("--admin-url", url, "--data-dir", own / "data"), (url,))


@contextmanager
def _https_on_http(own: Path) -> Iterator[Injected]:
    with started(own) as (_, ready):
        url = ready.web_url.replace("http://", "https://")
        yield Injected(("--admin-url", url, "--data-dir", own / "data"), (url,))


@contextmanager
def _refused(own: Path) -> Iterator[Injected]:
    (own / "secret.key").write_bytes(SECRET)
    plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
    settings = (
        "authenticationEnabled=true",
        "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        f"tokenSecretKey=file://{own}/secret.key",
        f"brokerClientAuthenticationPlugin={plugin}",
        f"brokerClientAuthenticationParameters=token:{token(SECRET)}",
    )
    with started(own, *settings) as (_, ready):
        (own / "client.conf").write_text(f"authPlugin=token\nauthParams=token:{token(bytes(40))}\n")
        yield Injected(asked(ready, own), (ready.web_url,))


# ---- TLS


def _tls(pair: Pair, web: int, binary: int) -> tuple[str, ...]:
    return (
        f"webServicePortTls={web}",
        f"brokerServicePortTls={binary}",
        f"tlsCertificateFilePath={pair.certificate}",
        f"tlsKeyFilePath={pair.key}",
    )


@contextmanager
def _behind_tls(own: Path, hosts: tuple[str, ...], ends: datetime.timedelta, *alone: str) -> Iterator[tuple[str, Signer]]:
    """URL of a server behind TLS, and the signer of its certificate."""
    signer, web = Signer(own), free_port()
    pair = signer.sign("own", hosts, ends=ends)
    with ExitStack() as ending:
        ending.enter_context(started(own, *_tls(pair, web, free_port()), *alone))
        (own / "client.conf").write_text(f"tlsTrustCertsFilePath={signer.pair.certificate}\n")
        yield f"https://127.0.0.1:{web}", signer


HERE = ("localhost", "127.0.0.1")


@contextmanager
def _tls_alone(own: Path) -> Iterator[Injected]:
    signer, web = Signer(own), free_port()
    pair = signer.sign("own", HERE)
    (own / "client.conf").write_text(f"tlsTrustCertsFilePath={signer.pair.certificate}\n")
    settings = (*_tls(pair, web, free_port()), "webServicePort=", "brokerServicePort=")
    with ServerProcess(own, settings) as server:
        with suppress(KeyError):  # its ready file has no addresses without TLS
            server.start()
        yield Injected(("--admin-url", f"https://127.0.0.1:{web}", "--data-dir", own / "data"))


def _shown(hosts: tuple[str, ...] = HERE, ends: datetime.timedelta = 90 * DAY) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        with _behind_tls(own, hosts, ends) as (url, _):
            yield Injected(("--admin-url", url, "--data-dir", own / "data"), (url.removeprefix("https://"),))

    return inject


@contextmanager
def _untrusted(own: Path) -> Iterator[Injected]:
    with _behind_tls(own, HERE, 90 * DAY) as (url, _):
        (own / "client.conf").write_text("")
        yield Injected(("--admin-url", url, "--data-dir", own / "data"), (url,))


@contextmanager
def _http_on_https(own: Path) -> Iterator[Injected]:
    with _behind_tls(own, HERE, 90 * DAY) as (url, _):
        plain = url.replace("https://", "http://")
        yield Injected(("--admin-url", plain, "--data-dir", own / "data"), (plain,))


@contextmanager
def _closed_port(own: Path) -> Iterator[Injected]:
    with started(own) as (server, ready):
        closed = free_port()
        ports = f"brokerServicePort={server.ports[0]}\nwebServicePort={server.ports[1]}\n"
        pair = Signer(own).sign("own", HERE)
        files = f"tlsCertificateFilePath={pair.certificate}\ntlsKeyFilePath={pair.key}\n"
        (own / "standalone.conf").write_text(f"{ports}webServicePortTls={closed}\n{files}")
        yield Injected(asked(ready, own, "--config", own / "standalone.conf"), (f"webServicePortTls={closed}",))


@contextmanager
def _port_taken(own: Path) -> Iterator[Injected]:
    """The other is of the binary protocol; its own web server would have another port."""
    with started(own / "first") as (server, _):
        (own / "standalone.conf").write_text(f"brokerServicePort={server.ports[0]}\nwebServicePort={free_port()}\n")
        words = ("--offline", "--data-dir", own, "--config", own / "standalone.conf")
        yield Injected(words, (f"brokerServicePort={server.ports[0]}",))


# ---- A server whose clock is another


def _behind_a_clock(skew: datetime.timedelta) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        with started(own) as (_, ready), _clock_proxy(ready.web_url.removeprefix("http://"), skew) as url:
            yield Injected(("--admin-url", url, "--data-dir", own / "data"), ("the server's clock is +",))

    return inject


@contextmanager
def _clock_proxy(address: str, skew: datetime.timedelta) -> Iterator[str]:
    """Hands on to the server, and puts its answers' Date forward: a process cannot be given a clock of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            behind = HTTPConnection(address, timeout=20)
            behind.request("GET", self.path)
            answer = behind.getresponse()
            body = answer.read()
            self.send_response_only(answer.status)
            date = parsedate_to_datetime(answer.headers["date"]) + skew
            self.send_header("Date", format_datetime(date, usegmt=True))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing: the table is what is printed."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


_skewed, _skewed_a_little = _behind_a_clock(SKEW), _behind_a_clock(datetime.timedelta(seconds=10))
