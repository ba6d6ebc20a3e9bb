"""Probes of addresses: whether a server listens there, and in words why not. Sends nothing, and waits a bounded time."""

import contextlib
import errno
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

PROBE_SECONDS = 2.0
PROBES_AT_ONCE = 16
LOCAL_SECONDS = 0.2
NO_ADDRESS = "has no address here (DNS)"
"""Answer for a name that may have an address elsewhere, such as in the network of containers."""
_DEFAULT_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651, "http": 80, "https": 443}


def problem_at(address: str) -> str:
    """Empty when `host:port` takes a connection; else why not."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_SECONDS):
            return ""
    except ValueError:
        return "is no host:port"
    except OSError as error:
        return reason_of(error)


def reason_of(error: OSError) -> str:
    """The reason of an error, for people."""
    if isinstance(error, TimeoutError):
        return "does not answer"
    if isinstance(error, socket.gaierror):
        return NO_ADDRESS
    if error.errno == errno.ECONNREFUSED:
        return "refuses connections: nothing listens there"
    return error.strerror or str(error)


def problems_at(addresses: Iterable[str]) -> Mapping[str, str]:
    """Problems of the addresses that do not take a connection; all are tried beside each other."""
    each = list(dict.fromkeys(addresses))
    with ThreadPoolExecutor(PROBES_AT_ONCE) as threads:
        return {address: problem for address, problem in zip(each, threads.map(problem_at, each), strict=True) if problem}


def deaths_at(addresses: Iterable[str]) -> Mapping[str, str]:
    """Dead addresses, as `problems_at` finds them, without names that have no address here: brokers may be elsewhere."""
    return {address: problem for address, problem in problems_at(addresses).items() if problem != NO_ADDRESS}


def addresses_in(urls: str) -> list[str]:
    """`host:port` of each in `http://a:8080,b:8080`; empty for what is no URL."""
    scheme, has_scheme, rest = urls.partition("://")
    found = []
    for each in rest.split(",") if has_scheme else ():
        with contextlib.suppress(ValueError):  # a port that is none
            parts = urlsplit(f"{scheme}://{each}")
            if parts.hostname:
                host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
                found.append(f"{host}:{parts.port or _DEFAULT_PORTS.get(scheme, 0)}")
    return found


def port_taken(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a process listens on the port on this machine."""
    with socket.socket() as probe:
        probe.settimeout(LOCAL_SECONDS)
        return probe.connect_ex((host, port)) == 0
