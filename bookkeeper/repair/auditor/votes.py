"""The election of the auditor: which vote wins, as Apache counts it. The rule is pure; `elected_auditor` reads the votes.

Each candidate has an ephemeral sequential node `auditorelection/V_<number>`, whose value says who it is. The lowest number is
the auditor (ZkLedgerAuditorManager).
"""

import re
from collections.abc import Iterable

from bookkeeper.repair.underreplication.tree import AUDITOR_ELECTION, MalformedUnderreplication, decode_vote
from metadata.store import MetadataStore

_VOTE = re.compile(r"V_(-?\d+)")


def winning_vote(names: Iterable[str]) -> str | None:
    """Node in `auditorelection` whose candidate is the auditor; None: there are no candidates."""
    votes = [(int(match[1]), name) for name in names if (match := _VOTE.fullmatch(name)) is not None]
    return min(votes)[1] if votes else None


async def elected_auditor(store: MetadataStore) -> str | None:
    """Name of the elected auditor; None: there is none. MetadataError."""
    vote = winning_vote(await store.children(AUDITOR_ELECTION))
    found = None if vote is None else await store.get(f"{AUDITOR_ELECTION}/{vote}")
    if found is None:
        return None
    try:
        return decode_vote(found.value)
    except MalformedUnderreplication as error:
        return f"unknown ({error})"
