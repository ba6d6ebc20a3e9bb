"""The process of a broker, of a standalone or of a cluster: web port, collector, ready line."""

import json
import logging
import os
import socket
from pathlib import Path

from broker.service.addresses import Advertised
from broker.service.broker_service import BrokerService
from cli.serving import interpreter
from cli.serving.ready_file import write_whole
from ports.ends import ENDS
from ports.logs import line
from wire.kernels import sends

log = logging.getLogger("interpulse")


def bound_socket(host: str, port: int) -> socket.socket:
    """A bound socket for the web server. OSError names the address."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"the web server cannot listen on {host}:{port}: {error.strerror}") from error
    return bound


def settle_interpreter() -> None:
    """Once a broker serves: the collector goes by the number of topics, connections and their parts that have ended
    and are in memory still."""
    interpreter.settle(lambda: ENDS.still_there)


def served_urls(found: Advertised) -> dict[str, str]:
    """URLs by the names of the ready file; those that are not served are left out."""
    urls = {
        "brokerServiceUrl": found.broker_url,
        "webServiceUrl": found.http_url,
        "brokerServiceUrlTls": found.broker_url_tls,
        "webServiceUrlTls": found.http_url_tls,
    }
    return {name: url for name, url in urls.items() if url}


def tell_ready(service: BrokerService, json_ready: str | None) -> None:
    """Reports that the broker is ready, in the log and in the file of `--json-ready`."""
    served = served_urls(service.lookup.advertised)
    kernels = (
        "compiled" if not sends.__file__.endswith(".py") else "NOT COMPILED (no C compiler at installation): slower, see README"
    )
    log.info(line("ready", **served, pid=os.getpid(), kernels=kernels))
    if json_ready:
        write_whole(Path(json_ready), json.dumps({**served, "pid": os.getpid()}))
