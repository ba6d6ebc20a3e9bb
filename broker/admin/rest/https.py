"""HTTPS: the admin REST behind TLS. A client's certificate goes with its requests, as `request.state.certificate`."""

import socket

from starlette.applications import Starlette

from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort
from ports.network.web_port import WebPort


def serve_admin_tls(app: Starlette, listening: socket.socket, tls: RenewedTls) -> TlsPort:
    """On a bound socket that listens, as `serve_admin` without TLS."""
    port = TlsPort(listening, WebPort(app), tls)
    port.start()
    return port
