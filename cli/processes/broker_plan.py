"""The plan of N brokers, from the settings that one broker would have. Pure."""

from broker.security.tls_settings import TlsSettings
from broker.service.settings import BrokerSettings
from cli.configuration.loading import Configuration
from cli.configuration.server_settings import ServerSettings
from cli.configuration.verdicts import BROKER
from cli.processes.plan import Front, ProcessesPlan, shifted_listeners, shifted_ports
from ports.settings import BadSetting

_PORTS = (
    ("brokerServicePort", "brokerServiceUrl", "pulsar"),
    ("webServicePort", "webServiceUrl", "http"),
    ("brokerServicePortTls", "brokerServiceUrlTls", "pulsar+ssl"),
    ("webServicePortTls", "webServiceUrlTls", "https"),
)
"""Key, its name in the ready line, scheme."""


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
