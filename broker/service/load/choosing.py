"""Choosing: who is asked to serve a bundle that nobody owns, as a question that lookups ask."""

from collections.abc import Collection
from typing import Protocol

from ..bundles import Bundle, Bundles, place


class Chooser(Protocol):
    """What the lookup asks."""

    async def choose(self, cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
        """One of the brokers; None when none of them may. MetadataError."""


class ByHash:
    """Whatever they do, each gets as many bundles of a namespace as any other, or one more."""

    async def choose(self, cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
        return place(cut, bundle, brokers)
