"""Processes of `--processes N`: the ports of each, their settings, and the ports in front. Pure.

The rule: process i (1 to N) has each of the configured ports + i; the configured ports themselves are in front, and whichever
process is free answers there. Relies on these ports being free; refuses impossible settings by the name of the key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from bookie.web.settings import BookieWebSettings
from broker.security.tls_settings import TlsSettings
from broker.service.settings import BrokerSettings
from cli.configuration.loading import Configuration
from cli.configuration.server_settings import ServerSettings
from cli.configuration.verdicts import BOOKIE, BROKER
from ports.settings import BadSetting

PROCESSES_MAX = 64
PORT_MAX = 65_535
_PORT_OF_URL = re.compile(r"(:)(\d+)$")
_PORTS = (
    ("brokerServicePort", "brokerServiceUrl", "pulsar"),
    ("webServicePort", "webServiceUrl", "http"),
    ("brokerServicePortTls", "brokerServiceUrlTls", "pulsar+ssl"),
    ("webServicePortTls", "webServiceUrlTls", "https"),
)
"""Key, its name in the ready line, scheme."""


@dataclass(frozen=True, slots=True)
class Front:
    """A port that all processes share. `is_web`: of HTTP; `is_tls`: connections begin with a handshake."""

    key: str
    host: str
    port: int
    is_web: bool
    is_tls: bool


@dataclass(frozen=True, slots=True)
class ProcessesPlan:
    """`settings`: by number, what each process is given beside what all have."""

    kind: str
    settings: Mapping[int, tuple[str, ...]]
    fronts: tuple[Front, ...]
    urls: Mapping[str, str]
    """URLs of the ports in front, for the ready line."""


def checked_count(command: str, text: str) -> int:
    """BadSetting for a number of processes that cannot be."""
    if not text.isdigit() or not 1 <= int(text) <= PROCESSES_MAX:
        raise BadSetting(
            f"--processes {text}: expected 1 to {PROCESSES_MAX}, at most one for each core, such as `{command} --processes 2`"
        )
    return int(text)


def shifted_ports(ports: Mapping[str, int], count: int) -> dict[int, dict[str, int]]:
    """Ports by number of the process and key. BadSetting where two would be the same, or beyond the last port."""
    taken = {port: f"{key}={port}" for key, port in ports.items()}
    found: dict[int, dict[str, int]] = {}
    for key, port in ports.items():
        if port == 0:
            raise BadSetting(f"{key}=0: with --processes every port is fixed: set it to a number")
        if port + count > PORT_MAX:
            raise BadSetting(
                f"{key}={port}: process {count} would have port {port + count}: set it to {PORT_MAX - count} or lower"
            )
        for number in range(1, count + 1):
            own = f"process {number} with {key} + {number}"
            if (other := taken.setdefault(port + number, own)) != own:
                raise BadSetting(
                    f"port {port + number} would be that of {own}, and of {other}: with --processes {count} set ports at least"
                    f" {count + 1} apart"
                )
            found.setdefault(number, {})[key] = port + number
    return found


def shifted_listeners(listeners: Sequence[str], number: int) -> str:
    """`advertisedListeners` of one process: each port + its number. BadSetting for a URL without a port."""
    shifted = []
    for each in listeners:
        found = _PORT_OF_URL.search(each.strip())
        if found is None:
            raise BadSetting(f"advertisedListeners: {each}: with --processes each URL needs its port")
        shifted.append(f"{each.strip()[: found.start(2)]}{int(found[2]) + number}")
    return ",".join(shifted)


def dealt(key: str, directories: Sequence[str], number: int, count: int) -> tuple[str, ...]:
    """The directories of one process: every Nth, beginning with its own number. BadSetting when they are too few."""
    if len(directories) < count:
        raise BadSetting(f"{key}={','.join(directories)}: {len(directories)} for {count} processes: name one for each or more")
    if len(set(directories)) < len(directories):
        raise BadSetting(f"{key}={','.join(directories)}: a directory stands there twice")
    return tuple(directories[number - 1 :: count])


def broker_plan(configuration: Configuration, host: str, count: int) -> ProcessesPlan:
    """`host`: under which clients find this machine. BadSetting."""
    where, tls = configuration.settings(ServerSettings), configuration.settings(TlsSettings)
    numbers = (where.broker_service_port, where.web_service_port, tls.broker_service_port_tls, tls.web_service_port_tls)
    rows = [(*row, port) for row, port in zip(_PORTS, numbers, strict=True) if port is not None]
    if not any(key.startswith("brokerServicePort") for key, *_ in rows):
        raise BadSetting("brokerServicePort and brokerServicePortTls are both empty: clients could not connect")
    ports = shifted_ports({key: port for key, _, _, port in rows}, count)
    listeners = configuration.settings(BrokerSettings).advertised_listeners
    settings = {number: [f"{key}={port}" for key, port in own.items()] for number, own in ports.items()}
    if any(each.strip() for each in listeners):
        for number, own in settings.items():
            own.append(f"advertisedListeners={shifted_listeners(listeners, number)}")
    fronts = tuple(
        Front(key, where.bind_address, port, is_web=key.startswith("web"), is_tls=key.endswith("Tls"))
        for key, _, _, port in rows
    )
    urls = {name: f"{scheme}://{host}:{port}" for _, name, scheme, port in rows}
    return ProcessesPlan(BROKER, {number: tuple(own) for number, own in settings.items()}, fronts, urls)


def bookie_plan(configuration: Configuration, count: int) -> ProcessesPlan:
    """BadSetting, also when there are fewer directories than processes."""
    server = configuration.settings(BookieServerSettings)
    front = _front(configuration.settings(BookieWebSettings))
    named = {"bookiePort": server.bookie_port} | ({} if front is None else {front.key: front.port})
    settings = {number: [f"{key}={port}" for key, port in own.items()] for number, own in shifted_ports(named, count).items()}
    directories = configuration.settings(BookieSettings)
    kinds = (("journalDirectories", directories.journal_directories), ("ledgerDirectories", directories.ledger_directories))
    for number, own in settings.items():
        own += [f"{key}={','.join(dealt(key, all_of_them, number, count))}" for key, all_of_them in kinds]
        if server.bookie_id:
            own.append(f"bookieId={server.bookie_id}-{number}")
    urls = {} if front is None else {"metricsUrl": f"{'https' if front.is_tls else 'http'}://{front.host}:{front.port}/metrics"}
    return ProcessesPlan(
        BOOKIE, {number: tuple(own) for number, own in settings.items()}, () if front is None else (front,), urls
    )


def _front(web: BookieWebSettings) -> Front | None:
    if web.http_server_enabled:
        return Front(
            "httpServerPort", web.http_server_host, web.http_server_port, is_web=True, is_tls=web.http_server_tls_enable
        )
    if web.serves_metrics_alone:
        key, host, port = "prometheusStatsHttpPort", web.prometheus_stats_http_address, web.prometheus_stats_http_port
        return Front(key, host, port, is_web=True, is_tls=False)
    return None
