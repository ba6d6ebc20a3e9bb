"""A subscription that has acknowledged some of a topic by chance, and which rows it has left."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from wire.generated.pulsar_api_pb2 import MessageIdData

from .messages import Row
from .model import Part
from .peer import Peer, Place
from .writer import Site

SUBSCRIPTION = "some"
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Asked:
    up_to: Place | None
    """Cumulatively."""
    whole: frozenset[Place]
    partly: dict[Place, frozenset[int]]
    """Indexes of the messages that are left of batches, by their place."""

    def is_left(self, row: Row) -> bool:
        *place, index = row["message_id"]
        at = (place[0], place[1])
        if (self.up_to is not None and at <= self.up_to) or at in self.whole:
            return False
        return at not in self.partly or index in self.partly[at]


def acknowledged(rng: Random, site: Site, parts: Sequence[Part], rows: Sequence[Row]) -> list[Row]:
    """The rows that are left."""
    left: list[Row] = []
    for part in parts:
        these = [row for row in rows if row["topic"] == part.topic]
        asked = _some(rng, part, these)
        with Peer(site.server.broker_url, part.topic) as peer:
            peer.subscribe(SUBSCRIPTION, is_shared=asked.up_to is None)
            if asked.up_to is not None:
                peer.acknowledge([MessageIdData(ledger_id=asked.up_to[0], entry_id=asked.up_to[1])], is_cumulative=True)
            ids = _ids(asked, part)
            rng.shuffle(ids)
            for first in range(0, len(ids), 50):
                peer.acknowledge(ids[first : first + 50])
        left += [row for row in these if asked.is_left(row)]
    return left


def _some(rng: Random, part: Part, rows: Sequence[Row]) -> _Asked:
    places = sorted(each.place for each in part.stored)
    up_to = rng.choice(places) if rng.random() < 0.4 else None
    share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    whole = frozenset(place for place in places if rng.random() < share and (up_to is None or place > up_to))
    partly = {}
    counts = {each.place: each.sent.count for each in part.stored if each.sent.rows and each.sent.rows[0]["batch_index"] >= 0}
    for place, count in counts.items():
        if count > 1 and place not in whole and rng.random() < 0.4 and (up_to is None or place > up_to):
            partly[place] = frozenset(rng.sample(range(count), rng.randint(1, count - 1)))
    return _Asked(up_to, whole, partly)


def _ids(asked: _Asked, part: Part) -> list[MessageIdData]:
    counts = {each.place: each.sent.count for each in part.stored}
    found = [MessageIdData(ledger_id=place[0], entry_id=place[1]) for place in sorted(asked.whole)]
    for place, left in sorted(asked.partly.items()):
        bits = sum(1 << index for index in left)
        words = [bits >> at & _WORD for at in range(0, counts[place], 64)]
        signed = [word - (1 << 64) if word >> 63 else word for word in words]
        found.append(MessageIdData(ledger_id=place[0], entry_id=place[1], ack_set=signed, batch_size=counts[place]))
    return found
