"""SessionKey: servers, id and password to end a ZooKeeper session from another process, and the ending.

Only a process that knows that the owner is gone may do it: its parent, once the process was reaped. Its ephemeral nodes go at
once then, and not when its time is out.
"""

import logging
from dataclasses import dataclass, field

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

_kazoo_log = logging.getLogger("kazoo")
_kazoo_log.setLevel(logging.ERROR)  # who asks says what came of it

END_SECONDS_MAX = 3.0
"""Longer is no gain: the session ends by itself."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Key to act as the session's owner: given to the parent process alone, and never logged."""

    servers: str
    session_id: int
    password: bytes = field(repr=False)


class SessionNotEnded(Exception):
    """No server was reached in time, or the session was over already."""


def end_session(key: SessionKey) -> None:
    """End the session; its ephemeral nodes are gone on return. SessionNotEnded. Blocks: for a thread."""
    client = KazooClient(key.servers, timeout=END_SECONDS_MAX, client_id=(key.session_id, key.password), logger=_kazoo_log)
    try:
        client.start(END_SECONDS_MAX)
        held = client.client_id
    except (KazooTimeoutError, KazooException, OSError) as error:
        raise SessionNotEnded(f"{key.servers} did not answer: {error or type(error).__name__}") from error
    finally:
        client.stop()
        client.close()
    if held is None or held[0] != key.session_id:
        raise SessionNotEnded("the session was over already")
