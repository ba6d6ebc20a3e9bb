"""Servers for tests of the tools' error texts and reconnects: each connection is answered by a function, in a thread.

Never waits for luck: a server listens before its port is told, and its threads end with it.
"""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(answer: Answer) -> Iterator[int]:
    """The port. Each connection is closed when `answer` is done with it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_accept, args=(server, answer), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(30)


def _accept(server: socket.socket, answer: Answer) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the test is over
            return
        with connection, contextlib.suppress(OSError):
            answer(connection)


def says(data: bytes) -> Answer:
    """Answers any request with `data` and ends the connection."""

    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(data)

    return answer


def with_tls(certificate: Path, key: Path, answer: Answer) -> Answer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def secured(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            answer(wrapped)

    return secured


def self_signed(directory: Path, *, host: str = "127.0.0.1", days: int = 2) -> tuple[Path, Path]:
    """Certificate and key, its own authority; with less than no days it has expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    other: x509.GeneralName = x509.DNSName(host)
    with contextlib.suppress(ValueError):
        other = x509.IPAddress(ipaddress.ip_address(host))
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    built = built.not_valid_before(end - datetime.timedelta(days=10)).not_valid_after(end)
    built = built.add_extension(x509.SubjectAlternativeName([other]), critical=False)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = built.sign(key, hashes.SHA256())
    certificate, private = directory / f"{host}{days}.pem", directory / f"{host}{days}.key"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private
