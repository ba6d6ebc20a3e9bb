"""Under which addresses this broker answers: the reply to LOOKUP and to `/lookup/v2`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import NoSuchListener

BROKERS = "/loadbalance/brokers"
"""Path below which the brokers of a cluster are registered, by their ids."""


@dataclass(frozen=True, slots=True)
class Advertised:
    """The URLs that clients reach this broker by. Empty: not served."""

    broker_url: str
    http_url: str
    broker_url_tls: str = ""
    http_url_tls: str = ""


def broker_id(advertised: Advertised) -> str:
    """Apache's broker id: host and port of the web server."""
    return (advertised.http_url or advertised.http_url_tls).partition("://")[2]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a lookup: the broker that serves the topic, or, where `is_redirect`, a broker to ask next."""

    address: Advertised
    is_redirect: bool = False


def parse_listeners(texts: Sequence[str], web: Advertised) -> Mapping[str, Advertised]:
    """`advertisedListeners`, by name. ValueError for an entry that is not `name:pulsar://...` or `name:pulsar+ssl://...`."""
    listeners: dict[str, Advertised] = {}
    for text in texts:
        name, _, url = text.strip().partition(":")
        known = listeners.get(name, Advertised("", web.http_url, "", web.http_url_tls))
        if name and url.startswith("pulsar://"):
            listeners[name] = Advertised(url, known.http_url, known.broker_url_tls, known.http_url_tls)
        elif name and url.startswith("pulsar+ssl://"):
            listeners[name] = Advertised(known.broker_url, known.http_url, url, known.http_url_tls)
        else:
            raise ValueError(f"advertisedListeners: expected name:pulsar://host:port, found {text!r}")
    return listeners


def address_for(listener: str, default: Advertised, listeners: Mapping[str, Advertised]) -> Advertised:
    """The addresses of the listener that was asked for.

    Apache refuses an unknown one with ServiceNotReady, on which C++ and Go clients close the connection with everything on
    it; NoSuchListener fails the one lookup.
    """
    if not listener:
        return default
    found = listeners.get(listener)
    if found is None:
        raise NoSuchListener(listener)
    return found
