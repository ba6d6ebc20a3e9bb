"""Isolation groups: which bookies a ledger may be stored on, by the groups of `/bookies`. Pure.

As Pulsar's IsolatedBookieEnsemblePlacementPolicy: the bookies of the primary groups; those of the secondary groups too when too
few of the primary ones take entries; and then those that are in no group at all. Where no bookie is in any group, or the
primary group is `*`, every bookie may be taken. A ledger may bring groups of its own (a namespace's bookie affinity group), in
its custom metadata.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

CUSTOM_METADATA_KEY = "EnsemblePlacementPolicyConfig"
ANY_GROUP = "*"


@dataclass(frozen=True, slots=True)
class IsolationGroups:
    """Names of groups."""

    primary: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()


class MalformedIsolation(Exception):
    """A ledger's custom metadata names groups in a way that cannot be read."""


def groups_of_ledger(custom_metadata: Mapping[str, bytes]) -> IsolationGroups | None:
    """Groups that a ledger brings; None when it brings none. MalformedIsolation."""
    value = custom_metadata.get(CUSTOM_METADATA_KEY)
    if value is None:
        return None
    try:
        properties = json.loads(value).get("properties") or {}
        return IsolationGroups(
            _names(properties.get("isolationBookieGroups")), _names(properties.get("secondaryIsolationBookieGroups"))
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise MalformedIsolation(f"{CUSTOM_METADATA_KEY}: {value[:80]!r} ({error!r})") from error


def _names(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names in a text with commas, or in a list."""
    parts = text.split(",") if isinstance(text, str) else text or ()
    return tuple(part.strip() for part in parts if part.strip())


def allowed(
    bookies: Collection[str], isolation: IsolationGroups | None, members: Mapping[str, Collection[str]], size: int
) -> list[str]:
    """Bookies on which a ledger with an ensemble of `size` may be; `members`: bookies of each group."""
    if isolation is None or ANY_GROUP in isolation.primary or not members:
        return list(bookies)
    primary = _members_of(isolation.primary, members)
    found = [name for name in bookies if name in primary]
    if len(found) < size:
        both = primary | _members_of(isolation.secondary, members)
        found = [name for name in bookies if name in both]
    if len(found) < size:
        apart = _members_of(tuple(members), members) - both
        found = [name for name in bookies if name not in apart]
    return found


def _members_of(groups: Sequence[str], members: Mapping[str, Collection[str]]) -> set[str]:
    return {name for group in groups for name in members.get(group, ())}
