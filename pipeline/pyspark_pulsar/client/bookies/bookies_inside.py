"""Bookies inside a broker's process, as a standalone has one: which there are, and what is in their files; blocking.

No server listens at the addresses by which ledgers name them. Their broker tells of them; with authentication it tells
super-users only (docs/adr/0030-reads-on-one-machine.md). A plan asks which there are, a task for the token: no plan carries it.
Apache's brokers have no such route, which costs a plan one answer of 404.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...decode.octets import Places
from ...errors import NoSuchTopic, Refused
from ...options import Access
from ...positions import Ledger
from ..admin_session import AdminSession
from ..connection import Lost
from .bookie_answers import Answers
from .local_files import LocalFiles, Offer

_PATH = "/admin/v2/bookies/local-reads"
_LOOPBACK = "127."
"""Beginning of their names: a plan of ledgers on other bookies asks no broker."""
_ASKED_SECONDS_MAX = 5.0
"""Longest wait for offers; without them reading is only slower."""
_REMEMBERED_SECONDS = 10.0
"""Time for which a process remembers offers: a plan of many topics, and a task of many ledgers, ask once."""
_REMEMBERED_MAX = 100
_remembered: dict[Access, tuple[float, Mapping[str, Offer]]] = {}
"""Offers by access, each with the time until which it is remembered."""


def placed(ledgers: Sequence[Ledger], access: Access) -> list[Ledger]:
    """Ledgers with those of their bookies that are inside a broker.

    A ledger that is still written to keeps its places only if all its bookies are inside: what the broker says is in it was
    stored by its own bookie, and no other one can have taken its place.
    """
    asks = any(name.startswith(_LOOPBACK) for each in ledgers for name in _bookies(each))
    inside = frozenset(_offers(access)) if asks else frozenset[str]()
    return [_placed(each, inside) for each in ledgers]


def _bookies(ledger: Ledger) -> frozenset[str]:
    return frozenset() if ledger.places is None else ledger.places.bookies


def _placed(ledger: Ledger, inside: frozenset[str]) -> Ledger:
    if ledger.places is None:
        return ledger
    here = ledger.places.bookies & inside
    if not ledger.places.is_closed and here != ledger.places.bookies:
        return replace(ledger, places=None)
    return replace(ledger, places=replace(ledger.places, inside=here)) if here else ledger


def _offers(access: Access) -> Mapping[str, Offer]:
    """Offers by the names of the bookies, {} where no broker answers."""
    if not _is_remembered(access):
        _remember(access, _asked(access))
    return _remembered[access][1]


def _is_remembered(access: Access) -> bool:
    return access in _remembered and _remembered[access][0] > time.monotonic()


def _remember(access: Access, offers: Mapping[str, Offer]) -> None:
    if len(_remembered) >= _REMEMBERED_MAX:
        _remembered.clear()
    _remembered[access] = time.monotonic() + _REMEMBERED_SECONDS, offers


def _asked(access: Access) -> Mapping[str, Offer]:
    hasty = replace(access, timeout_seconds=min(access.timeout_seconds, _ASKED_SECONDS_MAX))
    try:
        with AdminSession(hasty) as session:
            told = session.get("local reads", _PATH)
        return {str(name): Offer(str(each["socket"]).encode(), bytes.fromhex(each["token"])) for name, each in told.items()}
    except (NoSuchTopic, Refused, Lost):
        return {}  # no such route, or no permission; a reader through the broker sees other errors
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}  # the answer is none of our brokers'


class BookieInside:
    """Bookie read by its files alone, otherwise like `NearbyBookie`: unwritten entries are absent. Lost for every failure."""

    def __init__(self, name: str, access: Access) -> None:
        self.identity, self._files = _opened(name, access)

    def ask(self, ledger_id: int, entry_ids: Places) -> None:
        self._files.ask(ledger_id, entry_ids)

    def answers(self, entry_ids: Places, bytes_expected: int, bytes_max: int) -> Answers:
        """See `LocalFiles.answers`."""
        return self._files.answers(entry_ids, bytes_max)

    def close(self) -> None:
        self._files.close()


def _opened(name: str, access: Access) -> tuple[str, LocalFiles]:
    """Identity and files of a bookie; the identity tells it from bookies of the same name in other processes."""
    was_remembered = _is_remembered(access)
    offer = _offers(access).get(name)
    if offer is None:
        raise Lost(f"bookie {name}: its broker does not hand over its files")
    try:
        return f"{name} {offer.socket_name.decode(errors='replace')}", LocalFiles(offer, name, access.timeout_seconds)
    except Lost:
        if not was_remembered:  # the bookie is on another machine: do not ask for each small topic
            _remember(access, {})
            raise
    _remembered.pop(access, None)  # the bookie may have restarted since its broker was asked
    return _opened(name, access)
