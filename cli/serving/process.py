"""Work around every command that serves: it stops at a signal, and names the settings without effect."""

import asyncio
import logging
import signal
from collections.abc import Sequence

from broker.admin.rest.audit_settings import AuditSettings
from cli.configuration.contradictions import contradictions
from cli.configuration.loading import Configuration
from cli.configuration.verdicts import settle
from ports.logs import line, send_to_file
from ports.settings import BadSetting

log = logging.getLogger("interpulse")

STOPS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signal() -> asyncio.Event:
    """Set by SIGTERM and SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOPS:
        loop.add_signal_handler(number, stop.set)
    return stop


def end_on_signal() -> None:
    """Makes a second signal, during the stop, end the process at once."""
    loop = asyncio.get_running_loop()
    for number in STOPS:
        loop.remove_signal_handler(number)


def heed_configuration(configuration: Configuration, kind: str, settings: Sequence[type]) -> None:
    """One line with the keys that mean nothing here, and one for each contradiction. BadSetting for what cannot be followed."""
    unused = settle(configuration, kind, settings)
    found = list(contradictions([configuration.settings(each) for each in settings], kind))
    if fatal := [str(each) for each in found if each.ends_start]:
        raise BadSetting("; ".join(fatal))
    if AuditSettings in settings:
        set_up_audit(configuration.settings(AuditSettings))
    if unused:
        log.warning(line("settings without effect here", keys=",".join(unused)))
    for each in found:
        log.warning(line("settings contradict each other", settings=str(each)))


def set_up_audit(settings: AuditSettings) -> None:
    """Opens the log of changes over REST. OSError where its file cannot be written."""
    if not settings.audit_log_enabled:
        logging.getLogger("audit").setLevel(logging.CRITICAL)
    elif settings.audit_log_file:
        send_to_file("audit", settings.audit_log_file)
