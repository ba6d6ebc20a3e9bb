"""The plan of N bookies, from the settings that one bookie with all these directories would have. Pure.

A bookie's own protocol has no port in front: clients know each bookie by its name. HTTP has one, for the metrics of all.
"""

from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from bookie.web.settings import BookieWebSettings
from cli.configuration.loading import Configuration
from cli.configuration.verdicts import BOOKIE
from cli.processes.plan import Front, ProcessesPlan, dealt, shifted_ports


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
