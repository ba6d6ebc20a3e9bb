"""Whether a ledger's copies are as far apart as they should be. Pure."""

from collections.abc import Callable

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.repair.fragments import quorum_of


def could_spread_more(metadata: LedgerMetadata, place_of: Callable[[str], str], places_min: int) -> bool:
    """Whether some entry's copies are in fewer places than `places_min`, or than there are copies."""
    quorum = quorum_of(metadata)
    wanted = min(places_min, quorum.write_quorum)
    return any(
        len({place_of(segment.bookies[index]) for index in quorum.write_set(start)}) < wanted
        for segment in metadata.segments
        for start in range(quorum.ensemble_size)
    )
