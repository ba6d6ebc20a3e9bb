"""Knowledge of the peers of one seed: names to use, ids they got, the open things of each connection. Pure.

A fuzz that only guesses ids gets no further than "not found"; what is heard here is what is asked for next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from . import odd

T = TypeVar("T")
NAMESPACE = "public/fuzz"
KEPT_MAX = 200


@dataclass(slots=True)
class OpenProducer:
    """One that may send."""

    topic: str
    name: str
    sequence_id: int = 0


@dataclass(slots=True)
class Peer:
    """Things that one connection has open, as far as it knows."""

    number: int
    is_connected: bool = False
    request_id: int = 0
    producers: dict[int, OpenProducer] = field(default_factory=dict)
    consumers: dict[int, str] = field(default_factory=dict)
    """Topics by consumer id."""

    def next_request(self, rng: Random) -> int:
        """Mostly a new one; ids that come twice are answered twice."""
        self.request_id += 1
        return odd.either(rng, self.request_id, odd.WORDS, 60)


@dataclass(slots=True)
class Knowledge:
    """Knowledge of all peers of a seed."""

    seed: int
    places: list[tuple[int, int]] = field(default_factory=list)
    transactions: list[tuple[int, int]] = field(default_factory=list)
    producer_names: list[str] = field(default_factory=list)
    schema_versions: list[bytes] = field(default_factory=list)
    published: dict[str, dict[tuple[int, int], bool]] = field(default_factory=dict)
    """Places of messages by topic, as the broker told them, and whether the message may be delivered to no consumer."""

    unclear: set[str] = field(default_factory=set)
    """Topics with a message that may belong to a transaction that never ends: later messages are stored, and not read."""

    def stored(self, topic: str, where: tuple[int, int], *, is_filtered: bool) -> None:
        self.published.setdefault(topic, {})[where] = is_filtered

    @property
    def topics(self) -> Sequence[str]:
        """Topics of this seed: two plain ones, a partitioned one, its partition 0, a missing one (9), a non-persistent one."""
        base = f"{NAMESPACE}/t-{self.seed}"
        return (
            f"persistent://{base}-a",
            f"persistent://{base}-a",
            f"persistent://{base}-b",
            f"persistent://{base}-p",
            f"persistent://{base}-p-partition-0",
            f"persistent://{base}-p-partition-9",
            f"non-persistent://{base}-n",
        )

    def topic(self, rng: Random) -> str:
        name = rng.choice(self.topics)
        if not odd.is_odd(rng, 15):
            return name
        return rng.choice(
            (f"{NAMESPACE}/{odd.text(rng, 'x', 1)}", odd.text(rng, "x", 1), f"{name}{odd.text(rng, '-', 2)}", *_STRANGE)
        )

    def place(self, rng: Random) -> api.MessageIdData:
        """Place of a message: one that came, one beside it, or any."""
        ledger_id, entry_id = rng.choice(self.places) if self.places else (0, 0)
        if odd.is_odd(rng, 5):
            entry_id = rng.choice((entry_id + 1, entry_id + 1000, *odd.WORDS))
        if odd.is_odd(rng, 10):
            ledger_id = rng.choice((ledger_id + 1, max(0, ledger_id - 1), *odd.WORDS))
        found = api.MessageIdData(ledger_id=ledger_id & odd.WORDS[-1], entry_id=entry_id & odd.WORDS[-1])
        if odd.is_odd(rng, 4):
            found.partition = odd.either(rng, -1, odd.NUMBERS, 2)
        if odd.is_odd(rng, 4):
            found.batch_index = odd.either(rng, 0, odd.NUMBERS, 2)
        if odd.is_odd(rng, 3):
            found.ack_set.extend(odd.ack_set(rng))
            found.batch_size = odd.either(rng, 5, odd.NUMBERS, 2)
        return found

    def transaction(self, rng: Random) -> tuple[int, int]:
        """Most and least bits: of one that is open, has ended, or never was."""
        if self.transactions and not odd.is_odd(rng, 4):
            return rng.choice(self.transactions)
        return rng.choice((0, 1, 15, 16, *odd.WORDS)), rng.choice(odd.WORDS)

    def heard(self, command: BaseCommand) -> None:
        """Ids that a broker told."""
        if command.type == BaseCommand.SEND_RECEIPT:
            told = command.send_receipt.message_id
            _keep(self.places, (told.ledger_id, told.entry_id))
        elif command.type == BaseCommand.MESSAGE:
            _keep(self.places, (command.message.message_id.ledger_id, command.message.message_id.entry_id))
        elif command.type == BaseCommand.NEW_TXN_RESPONSE and not command.new_txn_response.HasField("error"):
            opened = command.new_txn_response
            _keep(self.transactions, (opened.txnid_most_bits, opened.txnid_least_bits))
        elif command.type == BaseCommand.PRODUCER_SUCCESS:
            _keep(self.producer_names, command.producer_success.producer_name)
            _keep(self.schema_versions, command.producer_success.schema_version)


_STRANGE = (
    "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
    "persistent://pulsar/system/__transaction_log_0",
    f"persistent://{NAMESPACE}/__change_events",
    f"persistent://{NAMESPACE}/__transaction_buffer_snapshot",
    "persistent://nobody/nothing/t",
    "persistent://public/fuzz",
    "persistent://a/b/c/d",
    "ftp://public/fuzz/t",
)


def _keep(kept: list[T], one: T) -> None:
    kept.append(one)
    if len(kept) > KEPT_MAX:
        del kept[: KEPT_MAX // 2]
