"""Plan of one ledger's repair: copies that it lacks, whether it must be closed first, and its metadata afterwards.

Pure. A bookie without a session is lost and not asked; of the others it counts what they answered.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.repair.ledger.fragments import Fragment, fragments_of, open_ensemble


class LedgerChanged(Exception):
    """Another client has changed the segment while it was copied: earlier findings count no more."""


class Lack(Enum):
    """Why a copy does not count."""

    LOST = "lost"
    """The copy's bookie has no session, or is being decommissioned."""
    LACKING = "lacking"
    """The copy's bookie answered that it does not have an entry, or gave a damaged one."""
    SILENT = "silent"
    """The copy's bookie has a session and does not answer."""


@dataclass(frozen=True, slots=True)
class FragmentPlan:
    """The copies that a fragment lacks, by their indexes in the ensemble."""

    fragment: Fragment
    lacks: Mapping[int, Lack]


@dataclass(frozen=True, slots=True)
class LedgerPlan:
    """`open_lost` are bookies of the segment that is written: it must be closed, unless its writer replaces them."""

    fragments: tuple[FragmentPlan, ...]
    open_lost: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return not self.fragments and not self.open_lost

    @property
    def failed_replicas(self) -> tuple[str, ...]:
        """Bookies that are there and lack copies, each once. Whether one that is not there is lost is for others to say."""
        failed = [
            each.fragment.bookies[index]
            for each in self.fragments
            for index, lack in each.lacks.items()
            if lack is not Lack.LOST
        ]
        return tuple(dict.fromkeys(failed))


Findings = Mapping[tuple[int, int], Lack]
"""Lacking copies, by first entry of the fragment and index in the ensemble."""


def asked_copies(metadata: LedgerMetadata, present: Collection[str]) -> list[tuple[Fragment, int]]:
    """The copies about which their bookies are to be asked."""
    return [
        (fragment, index)
        for fragment in fragments_of(metadata)
        for index, bookie in enumerate(fragment.bookies)
        if bookie in present
    ]


def plan_repair(metadata: LedgerMetadata, present: Collection[str], findings: Findings) -> LedgerPlan:
    """`present`: the bookies that are there and may stay. An empty fragment must not name a lost one either, or the bookie is
    never free of the ledger (BookKeeper issue 3239)."""
    plans = []
    for fragment in fragments_of(metadata):
        lacks = {}
        for index, bookie in enumerate(fragment.bookies):
            lack = findings.get((fragment.first_entry_id, index)) if bookie in present else Lack.LOST
            if lack is not None:
                lacks[index] = lack
        if lacks:
            plans.append(FragmentPlan(fragment, lacks))
    lost = tuple(bookie for bookie in open_ensemble(metadata) if bookie not in present)
    return LedgerPlan(tuple(plans), lost)


def with_bookies(metadata: LedgerMetadata, fragment: Fragment, new: Mapping[int, str]) -> LedgerMetadata | None:
    """The metadata with other bookies at these indexes of the fragment; None: it has them already.

    LedgerChanged when the segment is another than the one that was copied, or has one of them elsewhere already.
    """
    wanted = _replaced(fragment.bookies, new)
    for at, segment in enumerate(metadata.segments):
        if segment.first_entry_id != fragment.first_entry_id:
            continue
        if segment.bookies == wanted:
            return None
        if fragment not in fragments_of(metadata) or len(set(wanted)) < len(set(fragment.bookies)):
            break
        segments = (*metadata.segments[:at], replace(segment, bookies=wanted), *metadata.segments[at + 1 :])
        return replace(metadata, segments=segments)
    raise LedgerChanged(f"the segment from entry {fragment.first_entry_id} has changed since it was copied")


def _replaced(bookies: Sequence[str], new: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(new.get(index, bookie) for index, bookie in enumerate(bookies))
