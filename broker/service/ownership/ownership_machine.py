"""OwnershipMachine: the bundles that this broker may serve. Pure; owns the state of each bundle, nothing else.

A bundle is served only while its node under /namespace is ours. Topics are closed before the node is released, so that the next
owner finds its ledgers at rest; if the node went by itself (the session is over) the next owner may be there already, and the
ledgers, which it fences, keep us from writing (Apache: OwnershipCache, OwnedBundle).
"""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from .bundles import Bundle


class Holding(Enum):
    """FREE: not ours. TAKING: its node is being made. OWNED: served. CLOSING: topics are closed, RELEASING: its node goes."""

    FREE = "free"
    TAKING = "taking"
    OWNED = "owned"
    CLOSING = "closing"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True)
class Wanted:
    """This broker is to serve the bundle."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Taken:
    """The node is ours, in answer to `Take`."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Refused:
    """The node is another's, or there was no answer to `Take`."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Lost:
    """The node is no longer sure to be ours."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Unwanted:
    """This broker must not serve the bundle."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class TopicsClosed:
    """Answer to `CloseTopics`."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Released:
    """The node is not ours any more, in answer to `Release`."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Adopted:
    """The node is ours already, and so are the topics: the bundle is a part of one that is served here."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Replaced:
    """Other bundles have taken over the topics of this one."""

    bundle: Bundle


Event = Wanted | Taken | Refused | Lost | Unwanted | TopicsClosed | Released | Adopted | Replaced


@dataclass(frozen=True, slots=True)
class Take:
    """Make the node."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class CloseTopics:
    """Close all topics of the bundle, also those that are being loaded."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Release:
    """Remove the node, if it is ours still."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Settle:
    """Permission to callers that wait for the bundle to look again: it is OWNED or FREE."""

    bundle: Bundle


Effect = Take | CloseTopics | Release | Settle


class OwnershipMachine:
    """All bundles of one broker."""

    def __init__(self) -> None:
        self._holdings: dict[Bundle, Holding] = {}
        """Bundles that are not FREE."""
        self._unwanted: dict[Bundle, None] = {}
        """Bundles that are TAKING, and were given up meanwhile."""

    def holding(self, bundle: Bundle) -> Holding:
        return self._holdings.get(bundle, Holding.FREE)

    def held(self) -> list[Bundle]:
        """All bundles that are not FREE."""
        return list(self._holdings)

    def check_invariants(self) -> None:
        """Asserts the invariants, for tests."""
        assert Holding.FREE not in self._holdings.values()
        assert all(self.holding(bundle) is Holding.TAKING for bundle in self._unwanted)

    def handle(self, event: Event) -> list[Effect]:
        bundle, holding = event.bundle, self.holding(event.bundle)
        match event:
            case Wanted():
                return self._become(Holding.TAKING, Take(bundle)) if holding is Holding.FREE else []
            case Taken():
                return self._on_taken(bundle) if holding is Holding.TAKING else []
            case Refused():
                return self._freed(bundle) if holding is Holding.TAKING else []
            case Lost():
                return self._become(Holding.CLOSING, CloseTopics(bundle)) if holding is Holding.OWNED else []
            case Unwanted():
                return self._on_unwanted(bundle, holding)
            case TopicsClosed():
                return self._become(Holding.RELEASING, Release(bundle)) if holding is Holding.CLOSING else []
            case Released():
                return self._freed(bundle) if holding is Holding.RELEASING else []
            case Adopted():
                return self._become(Holding.OWNED, Settle(bundle)) if holding is Holding.FREE else []
            case Replaced():
                return self._become(Holding.RELEASING, Release(bundle)) if holding is Holding.OWNED else []
        assert_never(event)

    def _become(self, holding: Holding, effect: Effect) -> list[Effect]:
        self._holdings[effect.bundle] = holding
        return [effect]

    def _on_taken(self, bundle: Bundle) -> list[Effect]:
        if bundle in self._unwanted:
            del self._unwanted[bundle]
            return self._become(Holding.RELEASING, Release(bundle))
        return self._become(Holding.OWNED, Settle(bundle))

    def _on_unwanted(self, bundle: Bundle, holding: Holding) -> list[Effect]:
        if holding is Holding.TAKING:
            self._unwanted[bundle] = None
        return self._become(Holding.CLOSING, CloseTopics(bundle)) if holding is Holding.OWNED else []

    def _freed(self, bundle: Bundle) -> list[Effect]:
        self._holdings.pop(bundle, None)
        self._unwanted.pop(bundle, None)
        return [Settle(bundle)]
