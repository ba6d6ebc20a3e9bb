"""Why a server could not start to listen, with the key of its configuration that says where: the port is taken, forbidden, or
on an address that this machine does not have. Pure.
"""

import errno
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from cli.configuration.loading import Configuration, known_keys
from ports.settings import fold

_ADDRESS_KEYS = "bindAddress, httpServerHost or listeningInterface"
_FREE = "stop what listens there (`ss -ltnp` names it)"


def start_failure(error: Exception, configuration: Configuration | None, kinds: Sequence[type]) -> str:
    """`kinds`: the settings that have ports. `configuration` is None where there is none yet."""
    if not isinstance(error, OSError):
        return str(error)
    if configuration is None:
        return f"{error.filename}: {error.strerror}: correct --config" if error.filename else str(error)
    text = error.strerror or str(error)
    where = f"{text}: {error.filename}" if error.filename else text
    keys = list(_keys_of(text, configuration, kinds))
    match error.errno:
        case errno.EADDRINUSE if len(keys) > 1:
            return (
                f"{where}: {' and '.join(keys)} have the same port, or another process has it: {_FREE}, or set another for one"
            )
        case errno.EADDRINUSE:
            return f"{where}: {_FREE}, or set {''.join(keys) or 'its port'} to another port"
        case errno.EACCES if keys:
            return f"{where}: ports below 1024 need a privilege (CAP_NET_BIND_SERVICE): set {keys[0]} to a higher one"
        case errno.EADDRNOTAVAIL:
            return f"{where}: this machine has no such address: correct {_ADDRESS_KEYS}"
    return where


def _keys_of(text: str, configuration: Configuration, kinds: Sequence[type]) -> Iterator[str]:
    """The keys whose port is named in the text of the error."""
    spelling = {fold(key): key for key in known_keys()}
    numbers = {int(each) for each in re.findall(r"\d+", text)}
    for kind in kinds:
        settings: Any = configuration.settings(kind)
        for field in fields(kind):
            value = getattr(settings, field.name)
            if "port" in field.name.split("_") and isinstance(value, int) and value in numbers:
                yield spelling[fold(field.name)]
