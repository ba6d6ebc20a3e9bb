"""What a process that runs a broker does, be it a standalone or one of a cluster: the web port, memory, the ready line."""

import asyncio
import gc
import json
import logging
import os
import socket
from pathlib import Path

from broker.security.security import Security
from broker.service.broker_service import BrokerService
from cli.broker_parts import VERSION
from cli.ready_file import write_whole
from metadata.store import MetadataStore
from ports.logs import line
from wire.kernels import sends

log = logging.getLogger("magnetar")

READ_BUFFERS_BEFORE_GC = 50_000
"""Allocations between two runs of the cycle collector; nothing on the message path makes cycles."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Where the web server will listen. OSError names the address."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"the web server cannot listen on {host}:{port}: {error.strerror}") from error
    return bound


async def serve_web(
    service: BrokerService, store: MetadataStore, web_socket: socket.socket, security: Security | None = None
) -> asyncio.Server:
    """Last, and imported only now: a fifth of the time to start is this import, and publishing does not need it."""
    from broker.admin.app import admin_app, serve_admin
    from broker.admin.authorize import authorizer

    return await serve_admin(admin_app(service, store, VERSION, authorizer(security)), web_socket)


def settle_memory() -> None:
    """What was made at the start stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(READ_BUFFERS_BEFORE_GC, 20, 50)


def tell_ready(service: BrokerService, json_ready: str | None) -> None:
    """In the log, and in the file of `--json-ready`."""
    found = service.advertised
    kernels = (
        "compiled" if not sends.__file__.endswith(".py") else "NOT COMPILED (no C compiler at installation): slower, see README"
    )
    log.info(line("ready", brokerServiceUrl=found.broker_url, webServiceUrl=found.http_url, pid=os.getpid(), kernels=kernels))
    if json_ready:
        ready = {"brokerServiceUrl": found.broker_url, "webServiceUrl": found.http_url, "pid": os.getpid()}
        write_whole(Path(json_ready), json.dumps(ready))
